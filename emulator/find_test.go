package emulator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNamedHost(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"localhost:9010":               "localhost:9010",
		"http://localhost:9010":        "localhost:9010",
		"https://spanner:443":          "spanner:443",
		"passthrough:///[::1]:9010":    "[::1]:9010",
		"localhost":                    "",
		"http://":                      "",
		"unix:///run/emulator.sock":    "",
		"[::1":                         "",
		"dns:///localhost:9010":        "",
		"localhost:9010, example:9010": "",
	} {
		f, err := namedHost(value)
		if want == "" {
			require.ErrorContains(t, err, "is not host:port", value)
			continue
		}
		require.NoError(t, err, value)
		require.Equal(t, found{running: want}, f, value)
	}
}

func TestSameAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"localhost:9010", "localhost:9010", true},
		{"http://127.0.0.1:9010", "localhost:9010", true},
		{"[::1]:9010", "localhost:9010", true},
		{"spanner:9010", "spanner:9010", true},
		{"localhost:9010", "localhost:9011", false},
		{"spanner:9010", "localhost:9010", false},
		{"192.0.2.1:9010", "localhost:9010", false},
		{"localhost:9010", "", false},
		{"", "", false},
	} {
		require.Equal(t, tc.want, sameAddress(tc.a, tc.b), "%v", tc)
	}
}

func TestHostThatIsTheFrontItselfIsPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := script(t, dir, "emulator_main", "exit 1")
	m := emptyMachine(map[string]string{"SPANNER_EMULATOR_HOST": "localhost:9010"})
	_, err := find(t.Context(), Options{}, m, "127.0.0.1:9010")
	require.ErrorContains(t, err, "SPANNER_EMULATOR_HOST: the front's own address")

	m.path = []string{dir}
	f, err := find(t.Context(), Options{}, m, "127.0.0.1:9010")
	require.NoError(t, err)
	require.Equal(t, found{binary: binary}, f)
}

func TestNamedBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := script(t, dir, "emulator_main", "exit 1")
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o644))

	f, err := namedBinary("SPANNER_EMULATOR_BINARY", good)
	require.NoError(t, err)
	require.Equal(t, found{binary: good}, f)
	for path, says := range map[string]string{
		plain:                       "it is not executable",
		dir:                         "it is a folder",
		filepath.Join(dir, "other"): "file does not exist",
		filepath.Join(good, "sub"):  "not a directory",
	} {
		_, err := namedBinary("SPANNER_EMULATOR_BINARY", path)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "SPANNER_EMULATOR_BINARY is "+`"`+path+`"`)
	}
}

func TestInPath(t *testing.T) {
	t.Parallel()
	empty, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	want := script(t, first, "emulator_main", "exit 1")
	script(t, second, "emulator_main", "exit 1")
	require.NoError(t, os.Mkdir(filepath.Join(empty, "emulator_main"), 0o755)) // a folder is no program

	f, err := inPath([]string{"/nowhere", empty, first, second})
	require.NoError(t, err)
	require.Equal(t, found{binary: want}, f)
	_, err = inPath([]string{"/nowhere", empty})
	require.ErrorContains(t, err, "no emulator_main in any of its 2 folders")
}

func TestSplitPathLeavesRelativeFoldersOut(t *testing.T) {
	t.Parallel()
	value := strings.Join([]string{"/usr/bin", "", "bin", ".", "/bin"}, string(os.PathListSeparator))
	require.Equal(t, []string{"/usr/bin", "/bin"}, splitPath(value))
}

// sdk makes a Cloud SDK at root, with the emulator.
func sdk(t *testing.T, root string) (binary string) {
	t.Helper()
	return script(t, root, insideSDK, "exit 1")
}

func TestBelowRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "lib", "google-cloud-sdk")
	cask := filepath.Join(dir, "Caskroom", "gcloud-cli", "531.0.0", "google-cloud-sdk")
	without := filepath.Join(dir, "without")
	require.NoError(t, os.MkdirAll(without, 0o755))

	want := sdk(t, plain)
	f, err := belowRoots([]string{filepath.Join(dir, "nowhere"), without, plain})
	require.NoError(t, err)
	require.Equal(t, found{binary: want}, f)

	want = sdk(t, cask)
	f, err = belowRoots([]string{filepath.Join(dir, "Caskroom", "gcloud-cli", "*", "google-cloud-sdk")})
	require.NoError(t, err)
	require.Equal(t, found{binary: want}, f)

	_, err = belowRoots([]string{filepath.Join(dir, "nowhere")})
	require.ErrorContains(t, err, "none in "+filepath.Join(dir, "nowhere"))
	_, err = belowRoots([]string{without})
	require.ErrorContains(t, err, "there, but without the emulator: "+filepath.Join(without, filepath.FromSlash(insideSDK)))
}

func TestSDKRootsArePatternsThatGlobTakes(t *testing.T) {
	t.Parallel()
	for _, root := range sdkRoots() {
		_, err := filepath.Match(root, "")
		require.NoError(t, err, root)
		require.True(t, filepath.IsAbs(root), root)
	}
}

func TestBelowGcloud(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "sdk")
	want := sdk(t, root)
	path := func(body string) []string {
		dir := t.TempDir()
		script(t, dir, "gcloud", body)
		return []string{dir}
	}

	f, err := belowGcloud(t.Context(), path(`[ "$*" = "info --format=value(installation.sdk_root)" ] && echo `+root))
	require.NoError(t, err)
	require.Equal(t, found{binary: want}, f)

	for says, folders := range map[string][]string{
		"no gcloud in any of its 1 folders": {"/nowhere"},
		"ERROR: no python":                  path("echo warming up >&2; echo ERROR: no python >&2; exit 1"),
		"names no root":                     path("exit 0"),
		"/nowhere/bin":                      path("echo /nowhere"),
	} {
		_, err := belowGcloud(t.Context(), folders)
		require.ErrorContains(t, err, says)
	}
}

func TestGcloudThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	gcloud := script(t, t.TempDir(), "gcloud", "exec sleep 1000")
	_, err := gcloudRoot(t.Context(), gcloud, 10*time.Millisecond)
	require.ErrorContains(t, err, "did not answer within 10ms")
}

// emptyMachine has nothing.
func emptyMachine(env map[string]string) machine {
	return machine{getenv: func(name string) string { return env[name] }, path: []string{"/nowhere"}, sdkRoots: []string{"/nowhere/sdk"}}
}

func TestFindGoesInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	option := script(t, dir, "option", "exit 1")
	variable := script(t, dir, "variable", "exit 1")
	inFolder := script(t, filepath.Join(dir, "path"), "emulator_main", "exit 1")
	packaged := sdk(t, filepath.Join(dir, "packaged"))
	named := sdk(t, filepath.Join(dir, "named"))
	gcloud := script(t, filepath.Join(dir, "gcloud"), "gcloud", "echo "+filepath.Join(dir, "named"))
	docker := script(t, filepath.Join(dir, "docker"), "docker", "exit 0")

	env := map[string]string{"SPANNER_EMULATOR_HOST": "localhost:9010", "SPANNER_EMULATOR_BINARY": variable}
	m := machine{
		getenv:   func(name string) string { return env[name] },
		path:     []string{filepath.Dir(inFolder), filepath.Dir(gcloud), filepath.Dir(docker)},
		sdkRoots: []string{filepath.Join(dir, "packaged")},
	}
	o := Options{Binary: option}
	for _, step := range []struct {
		want   found
		remove func()
	}{
		{found{binary: option}, func() { o.Binary = "" }},
		{found{running: "localhost:9010"}, func() { delete(env, "SPANNER_EMULATOR_HOST") }},
		{found{binary: variable}, func() { delete(env, "SPANNER_EMULATOR_BINARY") }},
		{found{binary: inFolder}, func() { m.path = m.path[1:] }},
		{found{binary: packaged}, func() { m.sdkRoots = nil }},
		{found{binary: named}, func() { m.path = m.path[1:] }},
		{found{docker: docker}, func() { m.path = m.path[1:] }},
	} {
		f, err := find(t.Context(), o, m, "")
		require.NoError(t, err)
		require.Equal(t, step.want, f)
		step.remove()
	}
	_, err := find(t.Context(), o, m, "")
	require.ErrorIs(t, err, ErrNotFound)
}

func TestWhatTheUserNamesIsNeverReplaced(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	script(t, there, "emulator_main", "exit 1")
	for _, env := range []map[string]string{
		{"SPANNER_EMULATOR_HOST": "not an address"},
		{"SPANNER_EMULATOR_BINARY": "/nowhere/emulator_main"},
	} {
		m := emptyMachine(env)
		m.path = []string{there}
		_, err := find(t.Context(), Options{}, m, "")
		require.Error(t, err)
	}
}

func TestNotFoundListsEveryPlaceAndWhatHelps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script(t, dir, "gcloud", "echo /somewhere/sdk")
	script(t, dir, "docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
	m := emptyMachine(nil)
	m.path = []string{dir}

	_, err := find(t.Context(), Options{}, m, "")
	require.ErrorIs(t, err, ErrNotFound)
	for _, says := range []string{
		"SPANNER_EMULATOR_HOST: not set",
		"SPANNER_EMULATOR_BINARY: not set",
		"emulator_main in PATH: no emulator_main in any of its 1 folders",
		"the Cloud SDK where packages put it: none in /nowhere/sdk",
		"the Cloud SDK that gcloud names: /somewhere/sdk/bin/cloud_spanner_emulator/emulator_main: file does not exist",
		"docker: no engine answers: ",
		"Cannot connect to the Docker daemon",
		"gcloud components install cloud-spanner-emulator",
		"sudo apt-get install google-cloud-cli-spanner-emulator",
		"docker pull gcr.io/cloud-spanner-emulator/emulator",
	} {
		require.ErrorContains(t, err, says)
	}
}

func TestIgnoredEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("SPANNER_EMULATOR_HOST", "not an address")
	t.Setenv("SPANNER_EMULATOR_BINARY", "/nowhere/emulator_main")
	m := thisMachine(Options{IgnoreEnvironment: true})
	m.path, m.sdkRoots = nil, nil
	_, err := find(t.Context(), Options{IgnoreEnvironment: true}, m, "")
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "SPANNER_EMULATOR_HOST: not read")

	_, err = find(t.Context(), Options{}, thisMachine(Options{}), "")
	require.ErrorContains(t, err, `SPANNER_EMULATOR_HOST is "not an address"`, "and without the option it is")
}

//go:build unix

package emulator

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeDocker writes a docker client and the engine behind it: containers are processes that outlive the client, each
// with a file "NAME.pid" in the folder that is returned. What it was called with is in the file "calls".
func fakeDocker(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script(t, dir, "docker", `dir=`+dir+` emulator=`+realEmulator(t)+`
echo "$*" >>$dir/calls
case $1 in
version) echo 28.2.2 ;;
image) echo sha256:0 ;;
run)
	while [ "$1" != --name ]; do shift; done
	name=$2
	while [ "$1" != --host_port ]; do shift; done
	shift 2
	"$emulator" --host_port localhost:0 "$@" >/dev/null 2>$dir/$name.log &
	echo $! >$dir/$name.pid
	until grep -q "Server address" $dir/$name.log; do sleep 0.01; done
	echo "Server address: 0.0.0.0:9010" >&2
	wait $! ;;
port)
	sed -n 's/.*Server address: //p' $dir/$2.log
	echo "[::1]:1" ;;
rm)
	[ -f $dir/$3.pid ] || { echo "Error response from daemon: No such container: $3" >&2; exit 1; }
	kill -9 $(cat $dir/$3.pid)
	rm $dir/$3.pid ;;
esac
`)
	return dir
}

// container waits for the one container of a fake engine and returns its process.
func container(t *testing.T, dir string) (pid int) {
	t.Helper()
	eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
		if err != nil || len(files) != 1 {
			return false
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, "no container runs")
	return pid
}

func startInDocker(t *testing.T, dir string, o Options) (*Emulator, error) {
	t.Helper()
	m := emptyMachine(nil)
	m.path = []string{dir}
	e, err := startOn(t.Context(), o, m)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
	}
	return e, err
}

func TestDockerRunsTheEmulator(t *testing.T) {
	t.Parallel()
	dir := fakeDocker(t)
	e, err := startInDocker(t, dir, Options{Args: []string{"--abort_current_transaction_probability=0"}})
	require.NoError(t, err)
	require.NoError(t, e.CreateDatabase(t.Context(), database, accountTable))
	require.NoError(t, insertAccount(t.Context(), client(t, e, database), 1))

	pid := container(t, dir)
	require.NoError(t, e.Close())
	eventually(t, func() bool { return gone(pid) }, "the container still runs") // this engine does not wait for it

	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "pull gcr.io", "nothing is downloaded")
	calls := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Regexp(t, `^run --rm --pull=never --name (spanqueue-emulator-[a-z0-9]{12}) --publish 127\.0\.0\.1::9010 `+
		`--entrypoint \./emulator_main gcr\.io/cloud-spanner-emulator/emulator --host_port 0\.0\.0\.0:9010 `+
		`--abort_current_transaction_probability=0$`, calls[2])
}

func TestContainerEndsWithTheParent(t *testing.T) {
	t.Parallel()
	dir := fakeDocker(t)
	parent, _, addr := startChild(t, "docker:"+dir)
	pid := container(t, dir)
	require.NoError(t, parent.Process.Kill())
	requireGone(t, pid, addr)
}

func TestFailedStartRemovesTheContainer(t *testing.T) {
	t.Parallel()
	dir := fakeDocker(t)
	docker := filepath.Join(dir, "docker")
	body, err := os.ReadFile(docker)
	require.NoError(t, err)
	script(t, dir, "docker", strings.Replace(string(body), "port)", "port) echo 'no public port' >&2; exit 1 ;;\nport)", 1))

	_, err = startInDocker(t, dir, Options{})
	require.ErrorContains(t, err, "ask for the port of the container")
	require.ErrorContains(t, err, "no public port")
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	require.NoError(t, err)
	require.Empty(t, files, "the container is left")
}

func TestDockerThatDoesNotServe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, says string }{
		"no engine": {`echo "Cannot connect to the Docker daemon. Is the docker daemon running?" >&2; exit 1`,
			"no engine answers: "},
		"no image": {`[ $1 = version ] || { echo "Error response from daemon: No such image" >&2; exit 1; }`,
			"the engine has no image gcr.io/cloud-spanner-emulator/emulator: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script(t, dir, "docker", tc.body)
			_, err := startInDocker(t, dir, Options{})
			require.ErrorIs(t, err, ErrNotFound)
			require.ErrorContains(t, err, "docker: "+tc.says)
		})
	}
	_, err := inDocker(t.Context(), []string{"/nowhere"})
	require.ErrorContains(t, err, "no docker in any of its 1 folders")
}

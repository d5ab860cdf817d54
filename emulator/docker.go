package emulator

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// dockerImage is Google's image of the emulator. It is used where it is present and never pulled: nothing is
// downloaded behind the user's back.
const dockerImage = "gcr.io/cloud-spanner-emulator/emulator"

const (
	dockerTimeout = 10 * time.Second
	dockerPort    = "9010" // inside the container
)

// dockerLifeline is the lifeline for a container. The child is the docker client; killing it leaves the container to
// its engine, so the reader removes that by name. It tries for some seconds, since the engine may still be creating
// it. Any line but "reaped" means that the client is gone and the container may not be.
const dockerLifeline = `docker=$1 name=$2
{
	read -r word <&3 || kill -9 $$
	[ "$word" = reaped ] || for try in 1 2 3 4 5; do "$docker" rm -f "$name"; sleep 1; done
} >/dev/null 2>&1 &
shift 2
exec "$docker" "$@" 3<&-`

// inDocker finds a docker client whose engine answers and has the emulator's image.
func inDocker(ctx context.Context, path []string) (found, error) {
	docker, err := lookPath(path, "docker")
	if err != nil {
		return found{}, err
	}
	if _, err := runTool(ctx, dockerTimeout, docker, "version", "--format", "{{.Server.Version}}"); err != nil {
		return found{}, fmt.Errorf("no engine answers: %w", err)
	}
	if _, err := runTool(ctx, dockerTimeout, docker, "image", "inspect", "--format", "{{.Id}}", dockerImage); err != nil {
		return found{}, fmt.Errorf("the engine has no image %s: %w", dockerImage, err)
	}
	return found{docker: docker}, nil
}

func containerName() string {
	return "spanqueue-emulator-" + strings.ToLower(rand.Text()[:12])
}

// dockerCommand runs the emulator in a container that is called name. The port is published on the loopback interface
// alone, at one that the engine chooses.
func dockerCommand(docker, name string, args []string) command {
	run := []string{
		docker, name,
		"run", "--rm", "--pull=never", "--name", name, "--publish", "127.0.0.1::" + dockerPort,
		"--entrypoint", "./emulator_main", dockerImage, "--host_port", "0.0.0.0:" + dockerPort,
	}
	return command{
		script: dockerLifeline,
		args:   append(run, args...),
		cleanup: func(ctx context.Context) error {
			_, err := runTool(ctx, dockerTimeout, docker, "rm", "--force", name)
			if err != nil && strings.Contains(err.Error(), "No such container") {
				return nil
			}
			return err
		},
	}
}

// dockerAddress asks the engine where the container's port is.
func dockerAddress(ctx context.Context, docker, name string) (string, error) {
	out, err := runTool(ctx, dockerTimeout, docker, "port", name, dockerPort+"/tcp")
	if err != nil {
		return "", fmt.Errorf("emulator: ask for the port of the container: %w", err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return addr, nil
}

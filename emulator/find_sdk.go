package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// insideSDK is where the Cloud SDK keeps the emulator, below its root.
const insideSDK = "bin/cloud_spanner_emulator/emulator_main"

// gcloudTimeout bounds `gcloud info`, a Python program that takes half a second to several seconds.
const gcloudTimeout = 10 * time.Second

// sdkRoots lists where the ways to install the Cloud SDK put its root. Patterns are those of filepath.Glob.
func sdkRoots() []string {
	roots := []string{
		"/usr/lib/google-cloud-sdk",   // Debian package
		"/usr/share/google-cloud-sdk", // older Debian package
		"/usr/lib64/google-cloud-sdk", // RPM package
		"/snap/google-cloud-cli/current",
		"/snap/google-cloud-sdk/current",
		"/opt/homebrew/Caskroom/gcloud-cli/*/google-cloud-sdk", // Homebrew on Apple silicon
		"/opt/homebrew/Caskroom/google-cloud-sdk/*/google-cloud-sdk",
		"/opt/homebrew/share/google-cloud-sdk",
		"/usr/local/Caskroom/gcloud-cli/*/google-cloud-sdk", // Homebrew on Intel
		"/usr/local/Caskroom/google-cloud-sdk/*/google-cloud-sdk",
		"/usr/local/share/google-cloud-sdk",
		"/opt/google-cloud-sdk", // unpacked by hand
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "google-cloud-sdk"))
	}
	return roots
}

// belowRoot looks in one root of a Cloud SDK.
func belowRoot(root string) (found, error) {
	path := filepath.Join(root, filepath.FromSlash(insideSDK))
	if err := executable(path); err != nil {
		return found{}, fmt.Errorf("%s: %w", path, err)
	}
	return found{binary: path}, nil
}

func belowRoots(patterns []string) (found, error) {
	var without []string // roots that are there and have no emulator
	for _, pattern := range patterns {
		roots, _ := filepath.Glob(pattern) // the only error is a malformed pattern
		for _, root := range roots {
			f, err := belowRoot(root)
			if err == nil {
				return f, nil
			}
			without = append(without, err.Error())
		}
	}
	if len(without) == 0 {
		return found{}, fmt.Errorf("none in %s", strings.Join(patterns, ", "))
	}
	return found{}, fmt.Errorf("there, but without the emulator: %s", strings.Join(without, ", "))
}

// belowGcloud asks the gcloud in PATH for its root.
func belowGcloud(ctx context.Context, path []string) (found, error) {
	gcloud, err := lookPath(path, "gcloud")
	if err != nil {
		return found{}, err
	}
	root, err := gcloudRoot(ctx, gcloud, gcloudTimeout)
	if err != nil {
		return found{}, err
	}
	return belowRoot(root)
}

func gcloudRoot(ctx context.Context, gcloud string, timeout time.Duration) (string, error) {
	out, err := runTool(ctx, timeout, gcloud, "info", "--format=value(installation.sdk_root)")
	if err != nil {
		return "", err
	}
	root := strings.TrimSpace(out)
	if root == "" {
		return "", fmt.Errorf("%s info names no root", gcloud)
	}
	return root, nil
}

// runTool runs a program that answers on standard output. Its error holds the last line of what the program said.
func runTool(ctx context.Context, timeout time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second // for children of it that keep its output open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %s did not answer within %v: %w", name, args[0], timeout, context.Cause(ctx))
	}
	if err != nil {
		said := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			said = ": " + lastLine(string(exit.Stderr))
		}
		return "", fmt.Errorf("%s %s: %w%s", name, args[0], err, said)
	}
	return string(out), nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

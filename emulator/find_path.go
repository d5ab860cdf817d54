package emulator

import (
	"fmt"
	"path/filepath"
)

func splitPath(value string) []string {
	var folders []string
	for _, folder := range filepath.SplitList(value) {
		if filepath.IsAbs(folder) { // a relative one would mean another program in each working folder
			folders = append(folders, folder)
		}
	}
	return folders
}

// lookPath finds an executable in folders, without the environment.
func lookPath(folders []string, name string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s in any of its %d folders", name, len(folders))
}

func inPath(folders []string) (found, error) {
	path, err := lookPath(folders, "emulator_main")
	return found{binary: path}, err
}

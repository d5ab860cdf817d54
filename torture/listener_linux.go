package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listener finds the child of this process that listens on a port, or nil.
func listener(port string) *os.Process {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	sockets := make(map[string]bool)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listening(table, fmt.Sprintf("%04X", n), sockets)
	}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*") // those of other users cannot be read, and need not
	if err != nil {
		return nil
	}
	for _, file := range files {
		to, err := os.Readlink(file)
		if err != nil || !sockets[to] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			return p
		}
	}
	return nil
}

// listening collects the sockets of a table of the kernel's that listen on a port, as links to them are named.
func listening(table, port string, sockets map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // slot, local address, remote address, state, ..., inode as the tenth
		const listen = "0A"
		if len(fields) > 9 && fields[3] == listen && strings.HasSuffix(fields[1], ":"+port) {
			sockets["socket:["+fields[9]+"]"] = true
		}
	}
}

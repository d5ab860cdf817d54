package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"
)

// database is the database that a command works on, and the role it has there.
type database struct {
	connect    connector
	name, role string
	timeout    time.Duration // until its first answer
}

// connector makes a client for a database. An empty role is the one that the caller's credentials have.
type connector func(ctx context.Context, name, role string) (*spanner.Client, error)

// connect makes a client with the credentials that Google's client finds, or for the emulator that SPANNER_EMULATOR_HOST
// names.
func connect(ctx context.Context, name, role string) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, name, spanner.ClientConfig{DatabaseRole: role, DisableNativeMetrics: true})
}

// addTo adds the flags that name the database.
func (d *database) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.name, "database", "", "the database, as `projects/P/instances/I/databases/D`")
	flags.StringVar(&d.role, "role", "", "the database role to work with, a `name` (none: whatever the credentials may do)")
	flags.DurationVar(&d.timeout, "connect-timeout", 10*time.Second, "how long to wait for the database's first answer")
	if err := cmd.MarkFlagRequired("database"); err != nil {
		panic(err) // the flag was added above
	}
}

var databaseName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)

// with makes a client for f. first asks the database something before; an answer is waited for within the timeout.
func (d *database) with(cmd *cobra.Command, first func(context.Context, *spanner.Client) error, f func(*spanner.Client) error) error {
	if !databaseName.MatchString(d.name) {
		return fmt.Errorf("--database is %q; it must be projects/P/instances/I/databases/D", d.name)
	}
	if d.timeout <= 0 {
		return fmt.Errorf("--connect-timeout is %v; it must be above 0", d.timeout)
	}
	var client *spanner.Client
	err := firstAnswer(cmd.Context(), cmd.ErrOrStderr(), d.name, d.timeout, func(ctx context.Context) (err error) {
		if client, err = d.connect(ctx, d.name, d.role); err != nil {
			return fmt.Errorf("connect to %s: %w", d.name, err)
		}
		return first(ctx, client)
	})
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return err
	}
	return f(client)
}

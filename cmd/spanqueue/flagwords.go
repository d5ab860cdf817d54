package main

import "strings"

// flagError shows an error of package emulator to somebody at a shell, who knows flags and not the fields of Go structs.
type flagError struct{ err error }

func (e flagError) Error() string { return flagWords.Replace(e.err.Error()) }
func (e flagError) Unwrap() error { return e.err }

// flagWords are the settings of the emulator and of the front as the flags of `spanqueue emulator` call them.
var flagWords = strings.NewReplacer(
	"emulator: Options.Front: front: ", "",
	"Options.Binary", "--binary",
	"Options.Addr", "--addr",
	"Options.IgnoreEnvironment", "--ignore-environment",
	"within Options.StartTimeout, ", "within ", // which no flag sets
	"Options.LeaseLength", "--lease",
	"Options.RowDeletionInterval", "--row-deletion-interval",
)

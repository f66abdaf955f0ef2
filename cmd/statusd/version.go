package main

import "runtime/debug"

// stamped is set by make release: -ldflags "-X main.stamped=v0.1.0".
var stamped string

// version is the release, or the version of the module that the program was built from, which names the commit.
func version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

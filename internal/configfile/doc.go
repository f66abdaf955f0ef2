// Package configfile derives the settings of a process from one file: the commented default config file
// that the process embeds. The file is the only place that names a setting, its default, its flag and its
// purpose. Defaults, flags, help, "statusd config default" and the tables in docs/reference are generated
// from it.
//
// A setting is a field below the comment that documents it. A comment line "Flag: --NAME" gives it a flag.
// A setting of a section stands below the section's key:
//
//	log:
//	  # text or json, on standard error.
//	  # Flag: --log-format
//	  format: text
//
// A [File] is immutable and may be used from any goroutine.
package configfile

// Package rulefile reads YAML strictly: files of alert rules and of their tests. Every mistake of a file is found at once, with
// the line and column that an editor shows, also inside of folded, quoted and literal scalars.
package rulefile

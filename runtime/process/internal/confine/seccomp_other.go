//go:build !amd64 && !arm64

package confine

import "errors"

// CanFilter reports whether system calls can be filtered on this kind of machine.
const CanFilter = false

func filterSystemCalls(bool) error { return errors.New("not supported on this kind of machine") }

package status

import "errors"

// Warning is the error of a report that was stored except for a part. Everything but the part that
// the cause names is stored and sent. Any other error of a report means that nothing of the report
// was stored.
//
// Use errors.Is and errors.As to find the cause: a [*PhaseError], a [*WithheldError], or the error of the
// journal.
type Warning struct {
	cause error
}

func (w *Warning) Error() string { return w.cause.Error() }

// Unwrap returns the cause.
func (w *Warning) Unwrap() error { return w.cause }

// IsWarning reports whether err is a [*Warning]: the report was stored except for a part.
func IsWarning(err error) bool {
	_, ok := errors.AsType[*Warning](err)
	return ok
}

// warning returns a Warning with these causes, or nil without causes.
func warning(causes ...error) error {
	cause := errors.Join(causes...)
	if cause == nil {
		return nil
	}
	return &Warning{cause: cause}
}

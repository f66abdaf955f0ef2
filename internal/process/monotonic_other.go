//go:build !linux

package process

import (
	"errors"
	"time"
)

func monotonic() (time.Duration, error) { return 0, errors.ErrUnsupported }

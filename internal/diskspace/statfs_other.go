//go:build !linux && !darwin

package diskspace

import "errors"

func statfs(string) (Space, error) { return Space{}, errors.ErrUnsupported }

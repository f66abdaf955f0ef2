package nodeclient

import (
	"errors"
	"testing"
)

// While the kubelet is dead, another process may listen in its place: a token is sent only to a server that is verified.
func TestCheckToken_NeedsAVerifiedServer(t *testing.T) {
	for _, c := range []struct {
		credentials Credentials
		want        error
	}{
		{Credentials{TokenFile: "token", Insecure: true}, ErrTokenNeedsCA},
		{Credentials{TokenFile: "token", CAFile: "ca"}, nil},
		{Credentials{CertFile: "c", KeyFile: "k", Insecure: true}, nil},
	} {
		if err := c.credentials.CheckToken(); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.credentials, err, c.want)
		}
	}
}

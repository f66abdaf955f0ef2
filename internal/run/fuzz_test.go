package run

import "testing"

// Whatever a file has, it is a config or an error, and a config that is loaded can be validated.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"", "{}", "[]", "apiVersion: statusd/v1alpha1\nkind: Other\n", "nodeName: 7\nunknown: 1\n", "a: &a [*a]\n", "nodeName: !!binary x\n", "log: {format: json}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Load("fuzzed.yaml", data)
		if err != nil {
			return
		}
		_ = c.Validate() // must not panic
	})
}

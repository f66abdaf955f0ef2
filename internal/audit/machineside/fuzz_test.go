package machineside

import "testing"

// Whatever lies among the manifests, each pod that is read of it has a name.
func FuzzManifest(f *testing.F) {
	f.Add([]byte("kind: Pod\nmetadata: {name: a}\n---\n# nothing\n"))
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","namespace":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := decode("pod.yaml", data, "Node")
		for _, m := range all {
			if m.Name == "-node" || m.Namespace == "" {
				t.Errorf("got %+v, want a name and a namespace", m)
			}
		}
	})
}

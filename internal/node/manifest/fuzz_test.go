package manifest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Whatever a file has, it is decoded without a panic, twice in the same way, and each pod that is accepted has a name, a namespace and a UID.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*", "testdata/*.yaml", "../../../examples/pods/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Add([]byte(minimal))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"},null,{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		pods, problems := Decode("web.yaml", data, "node")
		again, _ := Decode("web.yaml", data, "node")
		if !reflect.DeepEqual(pods, again) {
			t.Fatalf("got %+v, and then %+v", pods, again)
		}
		for _, d := range pods {
			if d.Pod.Name == "" || d.Pod.Namespace == "" || d.Pod.UID == "" || d.Pod.Spec.NodeName != "node" || len(d.Pod.Spec.Containers) == 0 {
				t.Errorf("accepted %+v", d.Pod)
			}
		}
		for _, p := range problems {
			if p.Error() == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
	})
}

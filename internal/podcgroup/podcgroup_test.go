package podcgroup

import (
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	id := strings.Repeat("ab", 32)
	const uid = "5bb44d6b-3c05-4d14-a27a-64ac2e8b1b0c"
	const static = "0123456789abcdef0123456789abcdef"
	for _, tt := range []struct{ path, uid, id string }{
		{"/kubepods/burstable/pod" + uid + "/" + id, uid, id},
		{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5bb44d6b_3c05_4d14_a27a_64ac2e8b1b0c.slice/cri-containerd-" + id + ".scope", uid, id},
		{"/kubepods/pod" + static + "/" + id, static, id},
		{"/kubepods/pod" + uid, uid, ""},
		{"/kubepods/pod" + uid + "/" + id + "/below", uid, id},
		{"/statusd/" + uid + "/web", uid, ""},
		{"/system.slice/podman.service", "", ""},
		{"/", "", ""},
		{"", "", ""},
	} {
		if gotUID, gotID := Split(tt.path); string(gotUID) != tt.uid || gotID != tt.id {
			t.Errorf("Split(%q) = %q, %q", tt.path, gotUID, gotID)
		}
	}
}

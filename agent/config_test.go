package agent

import "testing"

func TestTaintsAndReservedResources(t *testing.T) {
	n := NodeConfig{Taints: []string{"a=b:NoSchedule", "c:NoExecute"}, Reserved: map[string]string{"cpu": "500m"}}
	taints, reserved := n.taints(), n.reserved()
	if len(taints) != 2 || taints[0].ToString() != "a=b:NoSchedule" || taints[1].ToString() != "c:NoExecute" {
		t.Errorf("got taints %v", taints)
	}
	if q := reserved.Cpu(); q.MilliValue() != 500 {
		t.Errorf("got %v reserved, want 500m of cpu", reserved)
	}
}

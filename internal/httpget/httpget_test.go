package httpget

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestPortsByNumberAndName(t *testing.T) {
	container := &v1.Container{Name: "app", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: 8080}, {Name: "zero"}}}
	for _, c := range []struct {
		port intstr.IntOrString
		want int
	}{
		{intstr.FromInt32(80), 80},
		{intstr.FromString("web"), 8080},
		{intstr.FromString("443"), 443},
		{intstr.FromString("admin"), 0},
		{intstr.FromString("zero"), 0},
		{intstr.FromInt32(0), 0},
		{intstr.FromInt32(65536), 0},
	} {
		got, err := portNumber(c.port, container)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("port %s: got %d and error %v, want %d", c.port.String(), got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), `"`+c.port.String()+`"`) {
			t.Errorf("port %s: the error does not name it: %v", c.port.String(), err)
		}
	}
}

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const root = "../.."

type values = map[string]any

// objects are decoded manifests, by kind, namespace and name.
type objects map[string]values

func decode(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var object values
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(object) == 0 { // a template that is off
			continue
		}
		meta, _ := object["metadata"].(values)
		all[fmt.Sprintf("%v %v/%v", object["kind"], meta["namespace"], meta["name"])] = object
	}
}

// render renders the chart as helm template does, the values checked by its schema.
func render(t *testing.T, namespace string, with values) (objects, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(root, "deploy/chart"))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "statusd", Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, with, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString("---\n" + files[name] + "\n")
		}
	}
	return decode(t, text.String()), nil
}

func rendered(t *testing.T, namespace string, with values) objects {
	t.Helper()
	all, err := render(t, namespace, with)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func kustomized(t *testing.T, overlay string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy", overlay))
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

// config decodes the configuration in a ConfigMap, so that comments and order do not count, and removes what is a default.
func config(t *testing.T, object values) {
	t.Helper()
	data := object["data"].(values)
	var decoded values
	if err := yaml.Unmarshal([]byte(data["observe.yaml"].(string)), &decoded); err != nil {
		t.Fatal(err)
	}
	outputs, _ := decoded["outputs"].(values)
	if outputs["events"] == false && outputs["conditions"] == false {
		delete(decoded, "outputs")
	}
	if repair, _ := decoded["repair"].(values); len(repair) == 1 {
		delete(decoded, "repair")
	}
	object["data"] = decoded
}

// A chart with its default values, in each mode, is what kustomize makes of the overlay of that name.
func TestChartIsTheOverlays(t *testing.T) {
	for _, mode := range []string{"observe", "guard", "repair"} {
		t.Run(mode, func(t *testing.T) {
			chart, overlay := rendered(t, "statusd", values{"mode": mode, "createNamespace": true}), kustomized(t, mode)
			const observers, settings = "DaemonSet statusd/statusd-observe", "ConfigMap statusd/statusd-observe"
			config(t, chart[settings])
			config(t, overlay[settings])
			template := chart[observers]["spec"].(values)["template"].(values)["metadata"].(values)
			if sum := template["annotations"].(values)["checksum/config"]; len(fmt.Sprint(sum)) != 64 {
				t.Errorf("got checksum %v", sum)
			}
			delete(template, "annotations") // kustomize has none
			for _, name := range slices.Sorted(maps.Keys(overlay)) {
				if !reflect.DeepEqual(chart[name], overlay[name]) {
					t.Errorf("%s:\nchart   %v\noverlay %v", name, chart[name], overlay[name])
				}
			}
			for name := range chart {
				if overlay[name] == nil {
					t.Errorf("only the chart has %s", name)
				}
			}
		})
	}
}

// What is optional is the file of deploy/observe for it.
func TestChartOptions(t *testing.T) {
	all := rendered(t, "statusd", values{"serviceMonitor": true, "reader": true, "outputs": values{"events": true}})
	for _, name := range []string{"ServiceMonitor statusd/statusd-observe", "Role statusd/statusd-fleet-reader", "ClusterRole <nil>/statusd-observe-writer"} {
		if all[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if all["Namespace <nil>/statusd"] != nil {
		t.Error("it makes a namespace that it was not asked for")
	}
}

// Nothing names another namespace than the release's, and the addresses of the API server may be of both families.
func TestChartInAnotherNamespace(t *testing.T) {
	all := rendered(t, "elsewhere", values{"mode": "guard", "serviceMonitor": true, "reader": true, "createNamespace": true,
		"networkPolicy": values{"apiServers": []any{"192.0.2.1/32", "2001:db8::1/128"}}, "config": values{"log": values{"level": "debug"}},
		"host": values{"runtimeDir": "/run/crio", "runtimeSocket": "crio.sock", "runtimeUnit": "crio.service"}})
	for name, object := range all {
		text := fmt.Sprint(object)
		if strings.Contains(name, " statusd/") || strings.Contains(text, "namespace:statusd ") || strings.Contains(text, "namespace:statusd]") || strings.Contains(text, "serviceaccount:statusd:") {
			t.Errorf("%s: %s", name, text)
		}
	}
	settings := all["ConfigMap elsewhere/statusd-observe"]
	config(t, settings)
	want := "criEndpoint:unix:///host/run/crio/crio.sock"
	for _, want := range []string{want, "level:debug", "format:json", "semaphore:elsewhere", "runtimeUnit:crio.service"} {
		if text := fmt.Sprint(settings); !strings.Contains(text, want) {
			t.Errorf("the config has no %s: %s", want, text)
		}
	}
	if policy := fmt.Sprint(all["NetworkPolicy elsewhere/statusd-observe"]); !strings.Contains(policy, "192.0.2.1/32") || !strings.Contains(policy, "2001:db8::1/128") {
		t.Errorf("got %s", policy)
	}
}

func TestChartRefusesWrongValues(t *testing.T) {
	for _, wrong := range []values{{"mode": "watch"}, {"port": "http"}, {"nonsense": true}, {"repair": values{"kinds": []any{"LeaseStale"}}}, {"host": values{"kubeletRoot": "var/lib"}}} {
		if _, err := render(t, "statusd", wrong); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

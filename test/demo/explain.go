package main

import (
	"path/filepath"

	"github.com/statusd/statusd/test/controlplane"
)

func (d *demo) explainJoined(server *controlplane.Process, daemon *daemon) {
	d.say(`
statusd is running as node %q. Its page says why each pod is in its state:

  http://%s/

In another terminal:

  export KUBECONFIG=%s
  kubectl get pods -A --watch                    # the pods below, as the API server has them
  kubectl describe pod web                       # conditions and events of a pod
  kubectl logs web -f                            # exec, attach, cp and port-forward work too
  kubectl delete pod flapping                    # watch it end with grace
  kubectl create deployment hello --image=host -- sh -c 'while date; do sleep 1; done'

make kubectl builds kubectl if you have none, and examples/kubectl.sh is a session with all of its daily verbs.

Pods that end in -local come from manifests in %s: edit one and save. The others came
through the API (%s). Kill a container, and see on the page why its pod is not Ready:

  pkill -f 'example-server.*18080'

Rules are in force too (the starter pack and %s); what fires is on the page and in

  %s alerts --socket %s

statusd logs to %s. Ctrl-C stops everything; the next run goes on from here.
`, nodeName, daemon.config.HealthzBindAddress, server.AdminKubeconfig(), manifests, apiPods,
		alertRules, d.statusd, daemon.config.QuerySocketPath(), daemon.logFile)
}

func (d *demo) explainStandalone(daemon *daemon) {
	d.say(`
statusd is running as node %q, without an API server. Its page says why each pod is in its state:

  http://%s/

In another terminal:

  curl -s %s/pods              # the pods below, with their whole status
  curl -s %s/readyz?verbose    # how statusd itself is
  ls %s/*/containers/*/logs    # the logs of containers

The pods come from manifests in %s: edit one and save. Kill a container, and see on the page why its pod is not Ready:

  pkill -f 'example-server.*18080'

Rules are in force too (the starter pack and %s); what fires is on the page and in

  %s alerts --socket %s

statusd logs to %s. Ctrl-C stops everything; the next run goes on from here.
`, nodeName, daemon.config.HealthzBindAddress, daemon.config.HealthzBindAddress, daemon.config.HealthzBindAddress,
		filepath.Join(daemon.config.StateDir, "runtime", "pods"), manifests,
		alertRules, d.statusd, daemon.config.QuerySocketPath(), daemon.logFile)
}

//go:build real

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	ills "github.com/statusd/statusd/test/broken"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var (
	wholeCorpus = flag.Duration("corpus", 0, "run all of examples/broken, look at it for so long, and write docs/evidence/broken-pods.md (make broken)")
	oneOfCorpus = flag.String("of-corpus", "", "run only these workloads of examples/broken, separated by commas")
	showCorpus  = flag.Bool("show-corpus", false, "show each explanation")
)

// fewOfCorpus are broken workloads of several kinds that are explained within seconds.
const fewOfCorpus = "db-password,config-map-missing,claim-unbound,quota,job-suspended,cron-suspended,no-matching-node,readiness-port,registry-image,service-account-missing"

// The bars of the whole corpus, in percent: 76 of 80 on statusd's node, 70 of 80 over the API alone.
const (
	barOfNode = 95.0
	barOfAPI  = 87.5
)

// looks are the verdicts on what was said about a workload, in order.
type looks struct {
	ills.Workload
	node, api        []ills.Judged
	moments          []ills.Judged // what was wrong, and right a moment later
	describe, k8sgpt string
}

// corpusCluster is a cluster with scheduler, controllers and one node, on which workloads are broken.
type corpusCluster struct {
	t      *testing.T
	server *controlplanetest.Server
	*daemon
	objects dynamic.Interface
}

// Broken workloads are explained by the words that their files list: the cause in the first clause, the fix in the advice, and
// nothing that would be wrong at any time.
func TestCorpus_IsExplained(t *testing.T) {
	only := *oneOfCorpus
	if only == "" && *wholeCorpus == 0 {
		only = fewOfCorpus
	}
	var corpus []*looks
	for _, one := range readCorpus(t) {
		if only == "" || slices.Contains(strings.Split(only, ","), one.Name) {
			corpus = append(corpus, &looks{Workload: one})
		}
	}
	c := startCorpus(t)
	for _, l := range corpus {
		c.create(l.Workload)
	}
	end := time.Now().Add(cmp.Or(*wholeCorpus, patience/2))
	for {
		c.look(corpus)
		if settled := !slices.ContainsFunc(corpus, func(l *looks) bool { return last(l.node) != ills.Yes || last(l.api) != ills.Yes }); settled && *wholeCorpus == 0 || time.Now().After(end) {
			break
		}
	}
	for _, l := range corpus {
		l.describe, l.k8sgpt = c.lastEvent(l.Workload), c.k8sgptOf(l.Workload)
		if *showCorpus {
			t.Logf("## %s: node %s, API %s\n%s\nAPI: %s\nevent: %s\nk8sgpt: %s", l.Name, final(l.node), final(l.api), newestText(l.node), newestText(l.api), l.describe, l.k8sgpt)
		}
		for _, j := range slices.Concat(l.node, l.api) {
			if j.Cause == ills.Wrong {
				t.Errorf("%s: wrong: %s", l.Name, j.Text)
				break
			}
		}
		for _, j := range l.moments {
			t.Logf("%s: wrong for a moment: %s", l.Name, j.Text)
		}
		if *wholeCorpus == 0 && (last(l.node) != ills.Yes || last(l.api) != ills.Yes) {
			t.Errorf("%s: node %s, API %s; want the words %q in the first clause\n%s\nAPI: %s", l.Name, last(l.node), last(l.api), l.First, newestText(l.node), newestText(l.api))
		}
	}
	report := corpusReport(corpus)
	t.Log("\n" + report.table())
	if *wholeCorpus > 0 && only == "" {
		if node, api := report.share(report.node), report.share(report.api); node < barOfNode || api < barOfAPI {
			t.Errorf("right: %.1f %% on the node, %.1f %% over the API; want %.1f %% and %.1f %%", node, api, barOfNode, barOfAPI)
		}
		writeCorpusPage(t, report)
	}
}

func startCorpus(t *testing.T) *corpusCluster {
	t.Helper()
	server := controlplanetest.StartCluster(t, 0)
	config, err := clientcmd.BuildConfigFromFlags("", server.Process.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &corpusCluster{t, server, newDaemon(t, "local").join(server), objects}
	c.config.Node.Addresses = []string{"127.0.0.1"} // at which the API server asks for logs
	c.config.Server.TLSCertFile, c.config.Server.TLSPrivateKeyFile = server.ServingCertificate(t, "127.0.0.1")
	c.start()
	until(t, "the node is Ready", func() bool {
		node, err := server.Admin().CoreV1().Nodes().Get(t.Context(), "local", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
			return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
		})
	})
	return c
}

// clusterScoped are the kinds of the corpus that have no namespace.
var clusterScoped = []string{"Namespace", "Node", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// create creates the objects of a workload in a namespace of its own.
func (c *corpusCluster) create(one ills.Workload) {
	c.t.Helper()
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	rest := one.Objects
	if rest[0].GetKind() == "Namespace" {
		namespace, rest = rest[0], rest[1:]
	}
	namespace.SetName(one.Name)
	c.createObject("", namespace)
	until(c.t, "service account of "+one.Name, func() bool {
		_, err := c.server.Admin().CoreV1().ServiceAccounts(one.Name).Get(c.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	for _, object := range rest {
		if object == rest[len(rest)-1] && rest[0].GroupVersionKind().Group == "admissionregistration.k8s.io" {
			c.awaitRefusal(one.Name)
		}
		if slices.Contains(clusterScoped, object.GetKind()) {
			c.createObject("", object)
			continue
		}
		c.createObject(one.Name, object)
	}
	if one.Then == "delete" {
		until(c.t, one.Name+" is Ready", func() bool {
			pod, err := c.server.Admin().CoreV1().Pods(one.Name).Get(c.t.Context(), one.Name, metav1.GetOptions{})
			return err == nil && condition(pod, v1.PodReady) == "True"
		})
		if err := c.server.Admin().CoreV1().Pods(one.Name).Delete(c.t.Context(), one.Name, metav1.DeleteOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// awaitRefusal waits until what refuses the pods of a namespace is in effect: the API server learns of policies by a watch.
func (c *corpusCluster) awaitRefusal(namespace string) {
	c.t.Helper()
	until(c.t, "pods of "+namespace+" are refused", func() bool {
		_, err := c.server.Admin().CoreV1().Pods(namespace).Create(c.t.Context(), controlplanetest.Pod(namespace, "try", ""), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}

func (c *corpusCluster) createObject(namespace string, object *unstructured.Unstructured) {
	c.t.Helper()
	client := c.resource(object).Namespace(namespace)
	if object.GetKind() == "Namespace" || slices.Contains(clusterScoped, object.GetKind()) {
		client = c.resource(object)
	}
	status, reported := object.Object["status"]
	if _, err := client.Create(c.t.Context(), object, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if !reported {
		return
	}
	// A patch, since a controller may write the status too.
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := client.Patch(c.t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatalf("status of %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func (c *corpusCluster) resource(object *unstructured.Unstructured) dynamic.NamespaceableResourceInterface {
	kind := object.GroupVersionKind()
	plural := strings.ToLower(kind.Kind) + "s"
	if strings.HasSuffix(kind.Kind, "Policy") {
		plural = strings.TrimSuffix(strings.ToLower(kind.Kind), "y") + "ies"
	}
	return c.objects.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: plural})
}

// look asks once about each workload, some at a time: the node about its pods, and the API server about all.
func (c *corpusCluster) look(corpus []*looks) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, l := range corpus {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			api := l.lasting(func() string {
				return c.said("--kubeconfig", c.server.Process.AdminKubeconfig(), "-n", l.Name, l.Explain)
			})
			node := api
			if strings.HasPrefix(l.Explain, "pod/") {
				onNode := l.lasting(func() string {
					return c.said("--server", "http://"+c.config.HealthzBindAddress, "-n", l.Name, l.Explain)
				})
				if !strings.HasPrefix(onNode.Text, "explain: ") { // or else no node has it, so that the command asks the API server
					node = onNode
				}
			}
			l.node, l.api = append(l.node, node), append(l.api, api)
		}()
	}
	wg.Wait()
}

// lasting judges what is said. A status and the event about it are two writes, so that what the event explains may be unexplained
// between them: what is wrong counts if it is still said after a second, or if it is said at a second look.
func (l *looks) lasting(ask func() string) ills.Judged {
	first := l.Judge(ask())
	if first.Cause != ills.Wrong {
		return first
	}
	time.Sleep(time.Second)
	again := l.Judge(ask())
	if again.Cause == ills.Wrong {
		return again
	}
	if l.moments = append(l.moments, first); len(l.moments) > 1 {
		return first
	}
	return again
}

func (c *corpusCluster) said(args ...string) string {
	said, err := explained(c.t, args...)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(said)
}

// lastEvent is what the last line of kubectl describe says about the object, or about a pod of it.
func (c *corpusCluster) lastEvent(one ills.Workload) string {
	list, err := c.server.Admin().CoreV1().Events(one.Name).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var newest v1.Event
	for _, e := range list.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, one.Name) && !e.LastTimestamp.Before(&newest.LastTimestamp) {
			newest = e
		}
	}
	return strings.TrimSpace(newest.Reason + " " + newest.Message)
}

// k8sgptOf is what the analyzers of k8sgpt say about the object and its pods, by the rules that docs/evidence/broken-pods.md lists.
func (c *corpusCluster) k8sgptOf(one ills.Workload) string {
	var found []string
	client, ctx, namespace := c.server.Admin(), c.t.Context(), one.Name
	kind, name, _ := strings.Cut(one.Explain, "/")
	get := metav1.GetOptions{}
	switch kind {
	case "deployment":
		if d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, get); err == nil && d.Status.Replicas != *d.Spec.Replicas {
			found = append(found, fmt.Sprintf("Deployment %s/%s has %d replicas but %d are available", namespace, name, *d.Spec.Replicas, d.Status.Replicas))
		}
		list, err := client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range list.Items {
			for _, condition := range r.Status.Conditions {
				if r.Status.Replicas == 0 && condition.Type == "ReplicaFailure" && condition.Reason == "FailedCreate" {
					found = append(found, condition.Message)
				}
			}
		}
	case "job":
		if j, err := client.BatchV1().Jobs(namespace).Get(ctx, name, get); err == nil {
			if j.Spec.Suspend != nil && *j.Spec.Suspend {
				found = append(found, "Job "+name+" is suspended")
			}
			if j.Status.Failed > 0 {
				found = append(found, "Job "+name+" has failed")
			}
		}
	case "cronjob":
		if j, err := client.BatchV1().CronJobs(namespace).Get(ctx, name, get); err == nil && j.Spec.Suspend != nil && *j.Spec.Suspend {
			found = append(found, "CronJob "+name+" is suspended")
		}
	case "statefulset":
		found = append(found, "StatefulSet uses the service "+namespace+"/"+name+" which does not exist.")
		if s, err := client.AppsV1().StatefulSets(namespace).Get(ctx, name, get); err == nil {
			for _, template := range s.Spec.VolumeClaimTemplates {
				if class := template.Spec.StorageClassName; class != nil {
					found = append(found, "StatefulSet uses the storage class "+*class+" which does not exist.")
				}
			}
		}
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		found = append(found, unschedulable(pod)...)
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if said := analyzed(pod, &status, c.newestOf(pod)); said != "" {
				found = append(found, said)
			}
		}
	}
	return strings.Join(found, "; ")
}

func (c *corpusCluster) newestOf(pod *v1.Pod) (newest v1.Event) {
	list, err := c.server.Admin().CoreV1().Events(pod.Namespace).List(c.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
	if err != nil && !apierrors.IsNotFound(err) && c.t.Context().Err() == context.Canceled {
		return newest
	}
	for _, e := range list.Items {
		if !e.LastTimestamp.Before(&newest.LastTimestamp) {
			newest = e
		}
	}
	return newest
}

func last(list []ills.Judged) ills.Verdict {
	if len(list) == 0 {
		return ills.No
	}
	return list[len(list)-1].Cause
}

func newestText(list []ills.Judged) string { return list[len(list)-1].Text }

// final is the verdict on a workload: wrong if it was wrong once, or else the most frequent verdict of the second half.
func final(list []ills.Judged) ills.Verdict {
	count := map[ills.Verdict]int{}
	for i, j := range list {
		if j.Cause == ills.Wrong {
			return ills.Wrong
		}
		if i >= len(list)/2 {
			count[j.Cause]++
		}
	}
	return slices.MaxFunc([]ills.Verdict{ills.No, ills.Partly, ills.Yes}, func(a, b ills.Verdict) int { return cmp.Compare(count[a], count[b]) })
}

// corpusSummary is how often each of four ways to ask named the cause and the fix.
type corpusSummary struct {
	rows                        [][]string
	node, api, describe, k8sgpt column
	total                       int
}

type column struct {
	cause   map[ills.Verdict]int
	fix     int
	lengths []int
}

func (c *column) add(j ills.Judged) {
	if c.cause == nil {
		c.cause = map[ills.Verdict]int{}
	}
	c.cause[j.Cause]++
	if j.Fix {
		c.fix++
	}
	c.lengths = append(c.lengths, j.Length)
}

func corpusReport(corpus []*looks) (r corpusSummary) {
	for _, l := range corpus {
		r.total++
		node, api := l.node[len(l.node)-1], l.api[len(l.api)-1]
		node.Cause, api.Cause = final(l.node), final(l.api)
		describe, k8sgpt := l.Judge(l.describe), l.Judge(l.k8sgpt)
		for _, j := range []*ills.Judged{&describe, &k8sgpt} { // neither gives advice
			j.Fix = false
		}
		r.node.add(node)
		r.api.add(api)
		r.describe.add(describe)
		r.k8sgpt.add(k8sgpt)
		r.rows = append(r.rows, []string{l.Name, string(node.Cause), yes(node.Fix), string(api.Cause), yes(api.Fix), fmt.Sprint(node.Length), string(describe.Cause), string(k8sgpt.Cause)})
	}
	return r
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (r corpusSummary) share(c column) float64 {
	return 100 * float64(c.cause[ills.Yes]) / float64(max(1, r.total))
}

// table is one line for each workload, and the sums.
func (r corpusSummary) table() string {
	var b strings.Builder
	format := "%-26s %-7s %-4s %-7s %-4s %6s  %-9s %s\n"
	fmt.Fprintf(&b, format, "workload", "node", "fix", "API", "fix", "length", "last event", "k8sgpt")
	for _, row := range r.rows {
		fmt.Fprintf(&b, format, row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7])
	}
	b.WriteString(r.summary())
	return b.String()
}

// summary is a Markdown table of the sums. Wrong is worth minus five.
func (r corpusSummary) summary() string {
	var b strings.Builder
	b.WriteString("| | cause named | partly | no | wrong | fix named | points | median length |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, row := range []struct {
		name string
		column
	}{{"statusd explain, on the node", r.node}, {"statusd explain, over the API alone", r.api}, {"last event of kubectl describe", r.describe}, {"rules of k8sgpt", r.k8sgpt}} {
		c := row.column
		slices.Sort(c.lengths)
		fmt.Fprintf(&b, "| %s | %d of %d | %d | %d | %d | %d | %d | %d |\n", row.name, c.cause[ills.Yes], r.total, c.cause[ills.Partly], c.cause[ills.No], c.cause[ills.Wrong], c.fix,
			c.cause[ills.Yes]-5*c.cause[ills.Wrong], c.lengths[len(c.lengths)/2])
	}
	return b.String()
}

const (
	corpusBegin = "<!-- make broken writes what follows -->\n"
	corpusEnd   = "<!-- until here -->\n"
)

// writeCorpusPage writes the sums, and which workloads statusd did not explain, to docs/evidence/broken-pods.md.
func writeCorpusPage(t *testing.T, r corpusSummary) {
	t.Helper()
	data, err := os.ReadFile(brokenPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), corpusBegin)
	_, after, ended := strings.Cut(rest, corpusEnd)
	if !ok || !ended {
		t.Fatalf("%s does not have the lines between which the sums stand", brokenPage)
	}
	said := r.summary() + "\n"
	for i, where := range []string{"on the node", "over the API alone"} {
		var names []string
		for _, row := range r.rows {
			if v := row[1+2*i]; v != string(ills.Yes) {
				names = append(names, fmt.Sprintf("[%s](../../examples/broken/%s.yaml) (%s)", row[0], row[0], v))
			}
		}
		said += "Not named " + where + ": " + cmp.Or(strings.Join(names, ", "), "none") + ".\n\n"
	}
	writeFile(t, brokenPage, before+corpusBegin+said+corpusEnd+after)
}

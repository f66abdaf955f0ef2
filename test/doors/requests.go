package doors

// Requests are what each client asks for, as "METHOD PATH". The node has a pod web in namespace default with one
// container, main, that runs, was never restarted, and has a shell.
func Requests() []string {
	return []string{
		"GET /pods", "GET /pods/", "POST /pods", "HEAD /pods", "GET /pods/web",
		"GET /runningpods/", "GET /runningpods", "POST /runningpods/",
		"GET /healthz", "GET /healthz/ping", "GET /healthz/syncloop", "GET /healthz/nothing", "POST /healthz",
		"GET /configz", "POST /configz",
		"GET /stats/summary", "POST /stats/summary", "PUT /stats/summary", "GET /stats", "GET /stats/", "GET /stats/nothing",
		"GET /metrics", "GET /metrics/", "POST /metrics", "GET /metrics/resource", "GET /metrics/probes", "GET /metrics/nothing",
		"GET /containerLogs/default/web/main",
		"GET /containerLogs/default/web/main/",
		"GET /containerLogs/default/web/main?tailLines=1&timestamps=true",
		"GET /containerLogs/default/web/main?tailLines=-1",
		"GET /containerLogs/default/web/main?tailLines=x",
		"GET /containerLogs/default/web/main?tail=x",
		"GET /containerLogs/default/web/main?tail=all",
		"GET /containerLogs/default/web/main?limitBytes=0",
		"GET /containerLogs/default/web/main?sinceTime=yesterday",
		"GET /containerLogs/default/web/main?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
		"GET /containerLogs/default/web/main?sinceSeconds=0",
		"GET /containerLogs/default/web/main?previous=true",
		"GET /containerLogs/default/web/nothing",
		"GET /containerLogs/default/nothing/main",
		"GET /containerLogs/nothing/web/main",
		"GET /containerLogs/default/web",
		"GET /containerLogs/default/web/main/more",
		"GET /containerLogs",
		"POST /containerLogs/default/web/main",
		"GET /exec/default/web/main?command=echo&output=1",
		"POST /exec/default/web/main?command=echo&output=1",
		"PUT /exec/default/web/main?command=echo&output=1",
		"POST /exec/default/web/main?command=echo",
		"POST /exec/default/web/main?command=echo&tty=1&error=1",
		"POST /exec/default/web/nothing?command=echo&output=1",
		"POST /exec/default/nothing/main?command=echo&output=1",
		"POST /exec/default/web/wrong-uid/main?command=echo&output=1",
		"POST /exec/default/web",
		"GET /attach/default/web/main?output=1",
		"POST /attach/default/web/main?output=1",
		"POST /attach/default/web/main",
		"POST /attach/default/web/nothing?output=1",
		"POST /attach/default/nothing/main?output=1",
		"POST /attach/default/web/wrong-uid/main?output=1",
		"GET /portForward/default/web", "POST /portForward/default/web", "DELETE /portForward/default/web",
		"POST /portForward/default/nothing", "POST /portForward/default/web/wrong-uid", "POST /portForward/default",
		"POST /run/default/web/main?cmd=echo+hello", "GET /run/default/web/main?cmd=echo+hello",
		"POST /run/default/web/main?cmd=test",
		"POST /run/default/web/nothing?cmd=echo", "POST /run/default/nothing/main?cmd=echo+hello",
		"POST /run/default/web/wrong-uid/main?cmd=echo+hello",
		// Not the kubelet's, or in disguise.
		"GET /", "GET /nothing", "POST /nothing", "GET /podsy",
		"GET /exec/../pods", "GET //pods", "GET /metrics/../exec/default/web/main?command=echo&output=1",
		"GET /containerLogs/default/..%2f..%2fpods/main", "GET /containerLogs/default/web%2fmain/x",
		// What a kubelet has and statusd has not.
		"GET /logs/", "GET /logs/messages", "POST /checkpoint/default/web/main", "GET /metrics/cadvisor",
		"GET /debug/pprof/", "PUT /debug/flags/v", "GET /statusz", "GET /flagz",
	}
}

// NotServed are those of the requests that only a kubelet answers: statusd asks for the same credentials and rights and
// then has nothing there.
func NotServed() []string {
	return []string{
		"GET /logs/", "GET /logs/messages", "POST /checkpoint/default/web/main", "GET /metrics/cadvisor",
		"GET /debug/pprof/", "PUT /debug/flags/v", "GET /statusz", "GET /flagz",
	}
}

// robustness is a campaign that looks for violations of statusd's invariants while everything around the manager fails: make robustness.
//
//	campaign ── starts, kills ──► API server (kube-apiserver, etcd)
//	   │  └──── starts, kills ──► agent (status.Manager, journal) ─► toxiproxy ─► gateway ─► API server
//	   └─ watches the API as an administrator
//
// The campaign knows what is true of the pods: it plays the container runtime. It has the agent report that, creates and deletes pods, and
// writes to them as others do. Each process of the agent is the campaign's own program in another role (package agent), or another manager behind the same commands (test/upstream/storm). It is a node user of the API server:
// the gateway, which runs in the campaign, has the node's certificate.
//
// A round has faults for 20 s: of the server, of the agent, wrong answers and others, some at the same time (perRound in rounds.go). They
// follow from the seed; what the pods do meanwhile depends on how fast the machine is. Then comes a calm: no fault, no traffic, until
// the API is true.
//
// All that happens goes to one file in the order of time, a JSON line each (package record): each call to the manager and its return, written by the
// agent before and after; each request with what the server and what the agent were answered, written by the gateway; each version of a pod,
// written by a watch that lists again whenever it ends; the writes of others; faults; and after each calm what the manager says of
// itself.
//
// At the end, or by -replay, validators judge the file (package judge). They are pure functions, and share no code with the manager. Of a violation
// the shortest history that shows it is printed.
//
// # Goroutines
//
//	traffic        changes pods at a rate; up to 20 requests of an administrator run beside it
//	watcher        records the API's pods
//	neighbor       writes to a pod of another node
//	process.read   records what the agent writes; process.write sends it commands; one each for a process
//	faults         one for each fault of a round, which ends with the round
//	gateway        those of net/http, and one for each watch
package main

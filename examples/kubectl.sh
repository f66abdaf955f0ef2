#!/usr/bin/env bash
# kubectl's daily verbs on the node of `make run`. Each step prints the command and what it printed, and
# the script ends with the first step that does not print what it should.
#
#   make kubectl-session          # starts everything, runs this, and stops everything
#
# or, while `make run` runs, in a second terminal at the top of the repository:
#
#   make kubectl metrics-server   # if they are not there yet
#   examples/kubectl.sh
#
# kubectl top needs a statusd that runs as root: metrics-server looks for its token where only a mount puts it.
set -euo pipefail
cd "$(dirname "$0")/.."
export KUBECONFIG=${KUBECONFIG:-$PWD/state/controlplane/admin.kubeconfig}
export PATH=$PWD/bin:$PATH
data=$(dirname "$KUBECONFIG")
namespace=kubectl-session
bytes=${BYTES:-1073741824} # through port-forward
patience=600               # seconds for what should come; a good run waits for moments, also on a slow machine

work=$(mktemp -d)
chmod 755 "$work"
background=()
finish() {
	code=$?
	if [ $code != 0 ]; then # what is needed to find out why
		kubectl get pods -A -o wide || true
		kubectl get events -A --sort-by=.lastTimestamp | tail -n 15 || true
		kubectl logs -n kube-system deployment/metrics-server --tail=15 2>/dev/null || true
	fi >&2
	for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
	kubectl delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null 2>&1 || true
	rm -rf "$work"
	if [ $code = 0 ]; then
		echo "kubectl session: all $steps steps did what they should, in $SECONDS s"
	else
		echo "kubectl session: failed in step $steps: $title" >&2
	fi
}
trap finish EXIT

steps=0 title=
step() {
	steps=$((steps + 1))
	title=$*
	printf '\n== %s. %s\n' "$steps" "$*"
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# k ARGUMENT...: kubectl in the namespace of this session.
k() { kubectl --namespace "$namespace" "$@"; }

# say COMMAND...: prints a command as a user would type it.
say() {
	local words=("$@")
	[ "${words[0]}" = k ] && words[0]=kubectl
	printf '$ %s\n' "${words[*]}"
}

# shows PATTERN COMMAND...: the command succeeds and prints a line that matches.
shows() {
	local pattern=$1
	shift
	say "$@"
	if ! "$@" </dev/null >"$work/out" 2>&1; then
		cat "$work/out"
		fail "the command failed; wanted a line with $pattern"
	fi
	head -n 12 "$work/out"
	grep -qE -- "$pattern" "$work/out" || fail "no line with $pattern"
}

# soon PATTERN COMMAND...: the command prints such a line, if not at once then a little later.
soon() {
	local pattern=$1 deadline=$((SECONDS + patience))
	shift
	say "$@"
	until "$@" </dev/null >"$work/out" 2>&1 && grep -qE -- "$pattern" "$work/out"; do
		if [ $SECONDS -ge $deadline ]; then
			cat "$work/out"
			fail "no line with $pattern within $patience s"
		fi
		sleep 0.2
	done
	head -n 12 "$work/out"
}

# until_lines COUNT PATTERN FILE: waits until so many lines of the file match.
until_lines() {
	local deadline=$((SECONDS + patience))
	until [ "$(tr -d '\r' <"$3" | grep -cE -- "$2")" -ge "$1" ]; do
		if [ $SECONDS -ge $deadline ]; then
			cat "$3"
			fail "fewer than $1 lines with $2 within $patience s"
		fi
		sleep 0.1
	done
}

# free_port FIRST COUNT: prints a port of so many from the first on at which nothing listens.
free_port() {
	local port
	while :; do
		port=$(($1 + RANDOM % $2))
		(exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# follows COUNT PATTERN ARGUMENT...: a kubectl that does not end by itself prints so many lines that match.
follows() {
	local count=$1 pattern=$2
	shift 2
	say k "$@"
	: >"$work/out"
	kubectl --namespace "$namespace" "$@" </dev/null >"$work/out" 2>&1 &
	background+=($!)
	until_lines "$count" "$pattern" "$work/out"
	kill $! 2>/dev/null || fail "it has ended by itself"
	wait $! 2>/dev/null || true
	head -n 6 "$work/out"
}

step "the node is ready and has no taint"
shows 'condition met' kubectl wait --for=condition=Ready node/local --timeout=${patience}s
soon '^\[?\]?$' kubectl get node local -o 'jsonpath={.spec.taints}{"\n"}'
shows created kubectl create namespace "$namespace"

step "create deployment"
shows created k create deployment talk --image=host -- /bin/sh -c 'n=0; while :; do n=$((n+1)); echo "line $n"; sleep 0.1; done'
shows 'successfully rolled out' k rollout status deployment/talk --timeout=${patience}s
pod=$(k get pod -l app=talk -o 'jsonpath={.items[0].metadata.name}')

step "logs"
soon '^line 20$' k logs "$pod"
shows '^line 1$' k logs deployment/talk
shows '^line [0-9]+$' k logs "$pod" --tail=3
[ "$(wc -l <"$work/out")" = 3 ] || fail "--tail=3 printed $(wc -l <"$work/out") lines"
shows '^20[0-9-]+T[0-9:.]+(Z|\+00:00) line ' k logs "$pod" --tail=1 --timestamps
shows '^line [0-9]+$' k logs "$pod" --since=2s
if grep -q '^line 1$' "$work/out"; then fail "--since=2s begins with the first line"; fi
[ "$(k logs "$pod" --limit-bytes=10 | wc -c)" = 10 ] || fail "--limit-bytes=10 printed another number of bytes"
follows 10 '^line [0-9]+$' logs "$pod" -f --tail=2
sed -i '$d' "$work/out" # it may have been cut
awk '{ if (NR > 1 && $2 != last + 1) exit 1; last = $2 }' "$work/out" || fail "logs -f lost or doubled a line"

step "logs -p: the run before"
shows created k run crash --image=host --restart=Always --command -- /bin/sh -c 'echo "this run ends"; sleep 1; exit 3'
soon '^[1-9]' k get pod crash -o 'jsonpath={.status.containerStatuses[0].restartCount}{"\n"}'
soon '^this run ends$' k logs crash -p
shows '"exitCode":3' k get pod crash -o 'jsonpath={.status.containerStatuses[0].lastState}'

step "exec"
shows '^hello$' k exec "$pod" -- echo hello
say k exec "$pod" -- sh -c "'exit 7'"
code=0
k exec "$pod" -- sh -c 'exit 7' >/dev/null 2>&1 || code=$?
[ $code = 7 ] || fail "exit code $code instead of 7"
say "head -c 5000000 /dev/urandom | kubectl exec -i $pod -- cat | cmp"
head -c 5000000 /dev/urandom >"$work/random"
k exec -i "$pod" -- cat <"$work/random" | cmp - "$work/random" || fail "stdin does not arrive as stdout"

step "exec -it: a terminal"
say k exec -it "$pod" -- sh
mkfifo "$work/keys"
: >"$work/typescript"
script -qefc "stty rows 33 cols 111; exec kubectl -n $namespace exec -it $pod -- sh" "$work/typescript" <"$work/keys" >/dev/null &
terminal=$!
background+=($terminal)
exec 3>"$work/keys"
until_lines 1 '^[#$] ?$' "$work/typescript" # its prompt
printf 'tty; stty size; echo "sum $((40 + 2))"; exit 5\n' >&3
code=0
wait $terminal || code=$?
exec 3>&-
tr -d '\r' <"$work/typescript" >"$work/out"
head -n 12 "$work/out"
grep -q '^/dev/pts/' "$work/out" || fail "there is no terminal"
grep -q '^33 111$' "$work/out" || fail "the terminal does not have the size of this one"
grep -q '^sum 42$' "$work/out" || fail "the shell did not answer"
[ $code = 5 ] || fail "exit code $code instead of 5"

step "attach"
follows 3 '^line [0-9]+$' attach "$pod"

step "cp there and back"
mkdir "$work/in"
chmod 777 "$work/in"
say k cp random "$pod:$work/in/there"
k cp "$work/random" "$pod:$work/in/there" >/dev/null
say k cp "$pod:$work/in/there" back
k cp "$pod:$work/in/there" "$work/back" >/dev/null 2>&1
cmp "$work/random" "$work/in/there" && cmp "$work/random" "$work/back" || fail "cp changed the file"

step "port-forward: $bytes bytes"
port=$(free_port 20000 10000)
shows created k create deployment files --image=host -- "$PWD/bin/example-server" --address "127.0.0.1:$port"
shows 'successfully rolled out' k rollout status deployment/files --timeout=${patience}s
soon 'hello' curl -s "http://127.0.0.1:$port/"
say k port-forward deployment/files ":$port"
: >"$work/forward"
kubectl --namespace "$namespace" port-forward deployment/files ":$port" >"$work/forward" 2>&1 &
background+=($!)
until_lines 1 '^Forwarding from 127.0.0.1' "$work/forward"
local_port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$work/forward")
begin=$SECONDS
through=$(curl -sf "http://127.0.0.1:$local_port/data?bytes=$bytes" | sha256sum) || fail "the download failed: $(cat "$work/forward")"
echo "$bytes bytes through port-forward in $((SECONDS - begin)) s, sha256 $through"
direct=$(curl -sf "http://127.0.0.1:$port/data?bytes=$bytes" | sha256sum)
[ "$through" = "$direct" ] || fail "the bytes differ: without port-forward $direct"

step "top, with metrics-server"
port=$(free_port 30000 2000)
ca=$data/pki/ca.crt
controlplane certificate --data-dir "$data" --name metrics-server.kube-system.svc --out "$data/metrics-server"
sed -e "s,@BIN@,$PWD/bin," -e "s,@DIR@,$data," -e "s,@PORT@,$port," -e "s,@CA@,$ca," -e "s,@CABUNDLE@,$(base64 -w0 <"$ca")," \
	examples/metrics-server.yaml >"$work/metrics-server.yaml"
shows 'apiservice.*metrics' kubectl apply -f "$work/metrics-server.yaml"
shows 'successfully rolled out' kubectl rollout status deployment/metrics-server -n kube-system --timeout=${patience}s
soon "^$pod +[0-9]+m +[1-9][0-9]*Mi" k top pod
soon '^local +[0-9]+m' kubectl top node

step "scale"
shows scaled k scale deployment/talk --replicas=3
shows 'successfully rolled out' k rollout status deployment/talk --timeout=${patience}s
shows '^3$' k get deployment talk -o 'jsonpath={.status.readyReplicas}{"\n"}'

step "rollout, and rollout undo"
shows updated k set env deployment/talk GREETING=hello
shows 'successfully rolled out' k rollout status deployment/talk --timeout=${patience}s
soon '^hello$' k exec deployment/talk -- sh -c 'echo $GREETING'
shows 'rolled back' k rollout undo deployment/talk
shows 'successfully rolled out' k rollout status deployment/talk --timeout=${patience}s
shows 'revision|REVISION' k rollout history deployment/talk

step "a job"
shows created k create job once --image=host -- echo "the job is done"
shows 'condition met' k wait --for=condition=Complete job/once --timeout=${patience}s
shows '^the job is done$' k logs job/once

step "cordon and uncordon"
shows cordoned kubectl cordon local
shows created k create deployment later --image=host -- sleep 1000
soon 'Unschedulable|unschedulable' k get pods -l app=later -o 'jsonpath={.items[0].status.conditions[0].message}{"\n"}'
shows uncordoned kubectl uncordon local
shows 'successfully rolled out' k rollout status deployment/later --timeout=${patience}s

step "drain"
shows drained kubectl drain local --force --ignore-daemonsets --delete-emptydir-data --grace-period=1 --timeout=${patience}s --pod-selector='app in (talk,files,later)'
soon '^talk +0/3' k get deployment talk # once its controller has seen it
shows uncordoned kubectl uncordon local
shows 'successfully rolled out' k rollout status deployment/talk --timeout=${patience}s

step "delete, and delete --force"
marker=stubborn-$$
shows created k run stubborn --image=host --command -- /bin/sh -c 'trap "" TERM; while :; do sleep 1; done' "$marker"
shows 'condition met' k wait --for=condition=Ready pod/stubborn --timeout=${patience}s
grep -qsa "[s]${marker#s}" /proc/[0-9]*/cmdline || fail "the process of pod stubborn is not found"
shows deleted k delete pod stubborn --force --grace-period=0
for _ in $(seq $((10 * patience))); do
	grep -qsa "[s]${marker#s}" /proc/[0-9]*/cmdline || break
	sleep 0.1
done
if grep -lsa "[s]${marker#s}" /proc/[0-9]*/cmdline; then fail "a process of the deleted pod still runs"; fi
shows deleted k delete deployment talk files later
soon 'No resources found' k get pods -l 'app in (talk,files,later)'

step "delete the namespace"
shows deleted kubectl delete namespace "$namespace" --timeout=${patience}s

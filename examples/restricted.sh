#!/bin/sh
# A pod of a restricted namespace, with a token, a config map and a secret, on the node of `make run`.
# In a second terminal, at the top of the repository:
#   make kubectl             # if there is no kubectl yet
#   examples/restricted.sh
set -eu
cd "$(dirname "$0")/.."
export KUBECONFIG="${KUBECONFIG:-state/controlplane/admin.kubeconfig}"
PATH="$PWD/bin:$PATH"

run() { echo "\$ $*"; "$@"; echo; }
logs() { kubectl -n ordinary logs ordinary; }
await() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		if "$@"; then return; fi
		sleep 1
	done
	echo "not so after ten seconds: $*" >&2
	exit 1
}

run kubectl version
echo "\$ kubectl apply -f examples/restricted.yaml"
await kubectl apply -f examples/restricted.yaml # again if the namespace has no service account yet
echo
run kubectl -n ordinary wait --for=condition=Ready --timeout=30s pod/ordinary
run kubectl -n ordinary get pod ordinary -o wide
saidOne() { logs | grep -q 'the password is one'; }
await saidOne
run kubectl -n ordinary logs ordinary
run kubectl -n ordinary patch secret keys -p '{"stringData":{"password":"two"}}'
saidTwo() { logs | grep -q 'the password is two'; }
await saidTwo
run kubectl -n ordinary logs ordinary
run kubectl -n ordinary delete pod ordinary

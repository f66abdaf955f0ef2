#!/bin/sh
# Usage: build.sh tree | build.sh PROGRAM FILE
# Makes build/kubelet-statusd/kubernetes, the source of the stock kubelet with statusd's manager in the place of its own, and
# builds a program of it: kubelet, or kubemark, which has a kubelet with a runtime that pretends to run containers. The source is copied from Go's module cache; this repository has none of it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
work=$top/build/kubelet-statusd
tree=$work/kubernetes
mkdir -p "$work"
# Two builds at once would change the tree under each other.
exec 9>"$work/.lock"
flock 9

# The module: versions are those of the control plane, so that what Go has compiled for the stock kubelet is compiled once.
server=$top/test/controlplane/server
release=$(cd "$server" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
(cd "$server" && go mod download k8s.io/kubernetes)
source=$(cd "$server" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)

# after PATTERN TEXT COUNT FILE adds TEXT below each line that matches, of which there must be COUNT.
after() {
	found=$(grep -cE "$1" "$4" || true)
	if [ "$found" != "$3" ]; then
		echo "$4: $found lines match $1, want $3: this is not the source that the hooks were written for" >&2
		exit 1
	fi
	sed -E -i "/$1/a\\
$2" "$4"
}

if [ "$(cat "$tree/.complete" 2>/dev/null)" != "$release $(cksum <"$here/build.sh")" ]; then
	echo "copying k8s.io/kubernetes $release"
	rm -rf "$tree"
	cp -R "$source" "$tree"
	chmod -R u+w "$tree"
	cd "$tree/pkg/kubelet"
	rm status/*.go
	# The kubelet keeps the resource version that a pod had when it was seen first, with the status of now: the manager could not say which
	# copy of a pod is newer, its own or the kubelet's.
	after '^[[:space:]]*existing\.Status = ref\.Status$' 'existing.ResourceVersion = ref.ResourceVersion' 2 config/config.go
	# The kubelet compares all pods of the node with each event of its watch. A pod with the version that the kubelet has needs no comparison.
	after '^func checkAndUpdatePod\(existing, ref \*v1\.Pod\)' \
		'if ref.ResourceVersion != "" && existing.ResourceVersion == ref.ResourceVersion { return }' 1 config/config.go
	# The manager sees each copy of a pod when it comes, and does not wait for its comparison of all pods.
	after '^[[:space:]]*klet\.statusManager = status\.NewManager\(' 'klet.podManager = observedPods{klet.podManager, klet.statusManager}' 1 kubelet.go
	# The manager's own answers, behind the kubelet's authentication and authorization.
	after '^[[:space:]]*configz\.InstallHandler\(s\.restfulCont\)$' \
		'if host, ok := s.host.(interface{ Statusd() http.Handler }); ok { s.restfulCont.Handle("/statusd/", host.Statusd()) }' 1 server/server.go
	sed -i '/probetest/d' "$tree/pkg/kubemark/hollow_kubelet.go" # as kubernetes.sh does for the stock kubemark
	echo "$release $(cksum <"$here/build.sh")" >"$tree/.complete"
fi
cd "$tree/pkg/kubelet"
rm -f status/*.go
for file in "$here"/status/*.go; do
	case $file in *_test.go) ;; *) cp "$file" status/ ;; esac
done
cp "$here/hooks.go.txt" statusd.go
cp "$here/hooks_test.go.txt" config/statusd_test.go
cp "$source"/pkg/kubelet/status/*_test.go status/

# In a module of its own, as the stock kubelet is built. It has the path of the module of this directory, since package history may
# import what is internal to statusd only under that path.
cd "$work"
mkdir -p kubelet/history
cp "$here/history/history.go" kubelet/history/
cp "$server/go.mod" "$server/go.sum" .
go mod edit -module github.com/statusd/statusd/test/upstream -require=github.com/statusd/statusd@v0.0.0 \
	-replace=github.com/statusd/statusd="$top" -replace=k8s.io/kubernetes="$tree"
cat "$top/go.sum" >>go.sum

[ "$1" != tree ] || exit 0
program=$1 file=$2
flags=
for component in component-base client-go/pkg; do
	flags="$flags -X k8s.io/$component/version.gitVersion=$release"
	flags="$flags -X k8s.io/$component/version.gitMajor=$(echo "$release" | cut -d. -f1 | tr -d v)"
	flags="$flags -X k8s.io/$component/version.gitMinor=$(echo "$release" | cut -d. -f2)"
done
(cd "$top" && go build -o "$work/build" ./test/build)
echo "building the $program $release with statusd's manager: the first time takes some minutes"
"$work/build" go "$program-statusd" -mod=mod -o "$work/built" -ldflags "-s -w $flags" "k8s.io/kubernetes/cmd/$program"
mv "$work/built" "$top/$file"

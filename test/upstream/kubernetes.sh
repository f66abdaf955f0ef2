#!/bin/sh
# Usage: kubernetes.sh PROGRAM FILE [RELEASE]
# Builds a program of Kubernetes (kubelet, kubectl, ...) of the release that test/controlplane/server uses, or of
# another one such as v1.34.4, or metrics-server, unless FILE exists.
set -eu
program=$1 file=$2 other=${3:-}
test ! -e "$file" || exit 0
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$file")"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
again=$here/../../.ci/again # for what needs the network
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$here/../.." && go build -o "$work/build" ./test/build)

# In a module of its own, which may add what the control plane does not need.
cp "$here/../controlplane/server/go.mod" "$here/../controlplane/server/go.sum" "$work"
cd "$work"
case $program in
metrics-server)
	release=v0.9.0
	package=sigs.k8s.io/metrics-server
	# It requires later versions of some modules that it does not need. With those of the control plane,
	# its packages need not be compiled a second time, which takes minutes.
	versions='{{if not (or .Main .Replace)}}{{.Path}}@{{.Version}}{{end}}'
	"$again" go list -m -f "$versions" all >before
	"$again" go get "$package/cmd/$program@$release" 2>"$work/messages" || { cat "$work/messages" >&2; exit 1; }
	go list -m -f "$versions" all | grep -vxFf before | cut -d@ -f1 | while read -r module; do
		grep "^$module@" before | sed "s,\(.*\)@,-replace=\1=\1@," | xargs -r go mod edit
	done
	flags="-X $package/pkg/version.gitVersion=$release"
	;;
*)
	if [ -n "$other" ]; then
		# With the modules that this release itself requires, and those of its own repository at its version.
		{
			echo "module example.com/kubernetes"
			grep '^go ' "$here/../controlplane/server/go.mod"
			echo "require k8s.io/kubernetes $other"
			sed -n "s,^[[:space:]]*\(k8s.io/[^ ]*\) => .*,replace \1 => \1 v0.${other#v1.},p" "$here/../controlplane/server/go.mod"
		} >go.mod
		rm go.sum
	fi
	release=$(go list -mod=mod -m -f '{{.Version}}' k8s.io/kubernetes)
	package=k8s.io/kubernetes
	flags=
	for component in component-base client-go/pkg; do
		flags="$flags -X k8s.io/$component/version.gitVersion=$release"
		flags="$flags -X k8s.io/$component/version.gitMajor=$(echo "$release" | cut -d. -f1 | tr -d v)"
		flags="$flags -X k8s.io/$component/version.gitMinor=$(echo "$release" | cut -d. -f2)"
	done
	;;
esac
"$again" go list -mod=mod -deps "$package/cmd/$program" >/dev/null
if [ "$program" = kubemark ]; then
	# Its kubelet gets the real prober: the fake one runs no probes, and the measurement needs pods that lose readiness.
	source=$(go list -mod=mod -m -f '{{.Dir}}' k8s.io/kubernetes)
	if [ "$(grep -c probetest "$source/pkg/kubemark/hollow_kubelet.go")" != 2 ]; then
		echo "pkg/kubemark/hollow_kubelet.go: want two lines with probetest, its import and its use" >&2
		exit 1
	fi
	module=$(go list -m)
	for dir in cmd/kubemark cmd/kubemark/app pkg/kubemark; do
		mkdir -p "$dir"
		for from in "$source/$dir"/*.go; do
			sed "/probetest/d; s,\"$package/\(cmd/kubemark/app\|pkg/kubemark\)\",\"$module/\1\"," "$from" >"$dir/${from##*/}"
		done
	done
	package=$module
fi
echo "building $program $release: the first time takes some minutes"
"$work/build" go "$program" -mod=mod -o "$work/built" -ldflags "-s -w $flags" "$package/cmd/$program"
# In one step: a file that exists is complete.
mv "$work/built" "$file.$$"
mv "$file.$$" "$file"

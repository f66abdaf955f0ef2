#!/bin/sh
# Usage: kubernetes.sh PROGRAM FILE
# Builds a program of Kubernetes (kubelet, kubectl, ...) of the release that controlplane/ uses, unless FILE exists.
set -eu
program=$1 file=$2
test ! -e "$file" || exit 0
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$file")"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# In a module of its own, which may add what the control plane does not need.
cp "$here/../controlplane/go.mod" "$here/../controlplane/go.sum" "$work"
cd "$work"
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
echo "building $program $release: the first time takes some minutes"
flags=
for package in component-base client-go/pkg; do
	flags="$flags -X k8s.io/$package/version.gitVersion=$release"
	flags="$flags -X k8s.io/$package/version.gitMajor=$(echo "$release" | cut -d. -f1 | tr -d v)"
	flags="$flags -X k8s.io/$package/version.gitMinor=$(echo "$release" | cut -d. -f2)"
done
go build -mod=mod -o "$file" -ldflags "-s -w$flags" "k8s.io/kubernetes/cmd/$program"

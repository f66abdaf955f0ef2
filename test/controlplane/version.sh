#!/bin/sh
# Usage: version.sh VERSION OUT
# Builds the control plane of test/controlplane/server with k8s.io/kubernetes VERSION, such as 1.34.4, for make compat-servers.
set -eu
version=$1
case $2 in /*) out=$2 ;; *) out=$PWD/$2 ;; esac
[ ! -e "$out" ] || exit 0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r "$(dirname "$0")/server/." "$dir"
cd "$dir"
rm go.sum
# The versions of indirect dependencies follow from Kubernetes' own.
sed -i -e "s/v0\.36\.3/v0.${version#*.}/; s#k8s.io/kubernetes v1.36.3#k8s.io/kubernetes v$version#" -e '/\/\/ indirect/d' go.mod
echo "building a control plane of Kubernetes $version, some minutes"
GOWORK=off GOFLAGS=-mod=mod go build -o "$out" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" .

#!/bin/sh
# Usage: image.sh NAME FILE COMMAND...
# Makes an archive, for ctr image import, of an image with nothing but a static busybox.
# The applets are those that the pods use.
set -eu
name=$1 file=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/root/bin" "$work/root/tmp" "$work/archive"
cp "$(command -v busybox)" "$work/root/bin/busybox"
for applet in sh sleep test rm wc echo cat dd; do
	ln -s busybox "$work/root/bin/$applet"
done
tar -C "$work/root" -cf "$work/archive/layer.tar" .
layer=$(sha256sum "$work/archive/layer.tar" | cut -d' ' -f1)

command=
for word in "$@"; do
	command="$command${command:+, }\"$word\""
done
cat > "$work/archive/config.json" <<JSON
{"architecture": "$(dpkg --print-architecture)", "os": "linux",
 "config": {"Cmd": [$command], "Env": ["PATH=/bin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]},
 "history": [{"created_by": "image.sh"}]}
JSON
cat > "$work/archive/manifest.json" <<JSON
[{"Config": "config.json", "RepoTags": ["$name"], "Layers": ["layer.tar"]}]
JSON
tar -C "$work/archive" -cf "$file" config.json layer.tar manifest.json

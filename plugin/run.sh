#!/bin/sh
# Runs the post-renderer in the environment that install.sh made beside this folder, or else the `minicluster` in PATH.
# It can be run from any folder: sh …/plugins/minicluster/run.sh --help

# Helm discards what a plugin writes to stderr. It shows the file name of a manifest whose name is not a string.
missing() {
  cat <<'EOF'
{"apiVersion": "v1", "kind": "Error", "metadata": {"name": ["error"], "annotations": {
"postrenderer.helm.sh/postrender-filename":
"\nminicluster: the plugin has no environment of its own, and there is no minicluster in PATH: pip install minicluster, or uninstall the plugin and install it by helm plugin install\n[the rest of this line is Helm's]"}}}
EOF
}

main() {
  folder=${HELM_PLUGIN_DIR:-$(dirname "$0")}
  if [ -x "$folder.env/bin/python" ]; then
    # -P: nothing is imported from the current folder
    PYTHONPATH=$folder exec "$folder.env/bin/python" -P -m minicluster "$@"
  elif command -v minicluster >/dev/null; then
    exec minicluster "$@"
  fi
  missing
}

main "$@"

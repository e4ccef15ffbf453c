#!/bin/sh
# Runs the post-renderer: by the environment that install.sh made beside this folder, else as `minicluster` in PATH.
# Works from any place: sh …/plugins/minicluster/run.sh --help

# Helm throws away what a plugin says on stderr, but shows the file name of a manifest whose name is no text.
missing() {
  cat <<'EOF'
{"apiVersion": "v1", "kind": "Error", "metadata": {"name": ["error"], "annotations": {
"postrenderer.helm.sh/postrender-filename":
"minicluster: the plugin has no environment of its own, and there is no minicluster in PATH: pip install minicluster, or uninstall the plugin and install it by helm plugin install [the rest of this line is Helm's]"}}}
EOF
}

main() {
  folder=${HELM_PLUGIN_DIR:-$(dirname "$0")}
  if [ -x "$folder.env/bin/python" ]; then
    # -P: what is in the current folder is not what is meant
    PYTHONPATH=$folder exec "$folder.env/bin/python" -P -m minicluster "$@"
  elif command -v minicluster >/dev/null; then
    exec minicluster "$@"
  fi
  missing
}

main "$@"

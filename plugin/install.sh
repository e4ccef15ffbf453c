#!/bin/sh
# Run by `helm plugin install`: makes a Python environment beside the plugin's folder, with the packages that
# requirements.txt names, by their hashes, and checks that the post-renderer runs in it. All or nothing.
set -u

newline='
'

# step NUMBER TEXT: shows a person where the installation is, on one line of the terminal
step() {
  if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then
    printf '\r\033[K%s' "${2:+minicluster: $1 of 3: $2}" >&2
  fi
}

fail() {
  step 0 ""
  rm -rf "$environment"
  echo "minicluster: $1; then: helm plugin uninstall minicluster, and install it again" >&2
  exit 1
}

# usable PYTHON: succeeds when it is new enough and can make an environment
usable() {
  "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    if usable "$python"; then
      return
    fi
  done
  found=$(python3 --version 2>&1) || found="no python3"
  fail "needs Python 3.11 or later with venv, and found $found in PATH: install it (Debian: python3-venv)"
}

main() {
  environment=$HELM_PLUGIN_DIR.env
  find_python
  rm -rf "$environment"
  step 1 "making a Python environment"
  problem=$("$python" -m venv "$environment" 2>&1) || fail "can't make an environment: $(last "$problem")"
  step 2 "getting its packages"
  # wheels only: a package that would have to be compiled counts as missing. Python compiles the modules that are used
  problem=$("$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    --only-binary :all: --require-hashes --requirement "$HELM_PLUGIN_DIR/requirements.txt" 2>&1) ||
    fail "$(reason "$problem")"
  step 3 "checking that it renders"
  problem=$(minicluster | sh "$HELM_PLUGIN_DIR/run.sh" render --random-curve 2>&1 >/dev/null) ||
    fail "does not render: $(last "$problem")"
  step 0 ""
}

# A document as the chart makes it.
minicluster() {
  cat <<'EOF'
apiVersion: post-renderer-required.add--post-renderer-minicluster/v1
kind: MiniCluster
metadata: {name: check}
EOF
}

# reason TEXT: prints why pip failed, in one line
reason() {
  case $1 in
    *"DO NOT MATCH THE HASHES"*"$newline"*)
      # the next line is: NAME==VERSION from ADDRESS (from …
      file=${1#*"DO NOT MATCH THE HASHES"*"$newline"    }
      echo "${file%% \(from *} does not have the hash that requirements.txt names:" \
        "get it from PyPI, or from a mirror of its files"
      ;;
    *)
      echo "pip can't get its packages: $(last "$1"): connect to an index, or have wheels in PIP_FIND_LINKS"
      ;;
  esac
}

# last TEXT: prints its last line
last() {
  printf '%s\n' "$1" | tail -n 1
}

main

# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to them
# The lead: the broker of rank 0 with the work, and the exit code of the work. For the entrypoint.

# Sets version to that of Flux, which must be 0.54 or later. On the lead only: workers have the same Flux.
find_version() {
  # that of a view is in a file unless it was copied
  pc=$mc_view/lib/pkgconfig/flux-core.pc
  if [ -n "$mc_view" ] && [ -r "$pc" ]; then
    while read -r key value; do [ "$key" != Version: ] || version=$value; done <"$pc"
  fi
  [ -n "$version" ] || version=$("$mc_flux" --version | sed -n 's/^commands:[[:space:]]*//p')
  case $version in
  0.[0-9].* | 0.[1-4][0-9].* | 0.5[0-3].*)
    warn "flux-core $version is too old: set flux.container.image to a view that has 0.54 or later"
    exit_with 1
    ;;
  # root's history of jobs fails for each (flux-core#5475)
  0.5[4-6].*) [ "$(id -u)" != 0 ] || export MINICLUSTER_NO_HISTORY=1 ;;
  esac
}

# Runs the broker of rank 0 with the work, and ends with the exit code of the work.
lead() {
  run_snippet broker-pre.sh
  # a result stands
  [ -e "$mc_state/run/exit-code" ] || is_fit '' || exit_unfit
  tell_of_former_lead
  limit_records
  limit_cache
  use_archive
  use_state_volume
  use_report
  log_to_file
  watch_kills &
  watch=$!
  # there is one if the container was killed at its end
  [ -e "$mc_state/run/exit-code" ] || run_lead
  kill "$watch" 2>/dev/null || true
  keep_archive
  print_report
  if [ -e "$mc_state/run/exit-code" ]; then
    # shellcheck disable=SC2209 # words, not a command
    case $mc_work in
    idle | diagnose) say "the instance was shut down; that Flux aborts rc2, a program that waits for this, is no failure" ;;
    esac
    read -r mc_result <"$mc_state/run/exit-code"
    [ "$mc_result" = 0 ] || warn "the job failed with exit code $mc_result"
    tell ended "$mc_result" || true
    run_snippet post.sh
    exit_with "$mc_result"
  fi
  [ -z "$mc_stopped" ] || exit "$RETRY_CODE"
  if has_died; then
    warn "the broker died, exit code $mc_code: the Job replaces this pod"
    exit "$RETRY_CODE"
  elif [ -e "$mc_state/run/ready" ]; then
    warn "the instance was shut down before its job ended"
  else
    show_errors
    warn "the broker did not start, exit code $mc_code$(also_has)"
  fi
  tell ended "$((mc_code ? mc_code : 1))" || true
  exit_with "$((mc_code ? mc_code : 1))"
}

# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# Reports the jobs of the queue at the end of the lead's broker: to a file, and to the log. For the entrypoint.

# lines of a report that the log gets: it must not push out the work's output
LOGGED_LINES=10000

# Lets the broker write the report before Flux's own rc3, which ends the queue and dumps the archive.
use_report() {
  [ -n "$mc_report_path$mc_report_log" ] || return 0
  rc3=$("$mc_flux" config builtin rc3_path) || {
    warn "there will be no report of the jobs: Flux does not tell its rc3"
    return 0
  }
  problem=$mc_state/run/report.problem
  mc_rc3="'$mc_flux' python '$mc_files/job_report.py' '$mc_state/run' $mc_end_seconds $mc_report_path"
  mc_rc3="$mc_rc3 2>'$problem' && rm -f '$problem'; $rc3"
  mc_start_words="$mc_start_words -o-Sbroker.rc3_path=\"\$mc_rc3\""
}

# Prints the report, as lines that `minicluster jobs` finds again, and why there is none.
print_report() {
  [ -n "$mc_report_path$mc_report_log" ] && [ -e "$mc_state/run/ready" ] || return 0
  report=$mc_state/run/report
  if [ -e "$report.problem" ] || ! [ -e "$report" ]; then
    why=$(tail -n 1 "$report.problem" 2>/dev/null) || true
    warn "the report of the jobs failed: ${why:-the broker had no time for it}"
  fi
  { read -r purged <"$report.purged"; } 2>/dev/null || purged=0
  [ "$purged" = 0 ] || warn "$purged jobs are missing in the report: Flux no longer had their records"
  [ -n "$mc_report_log" ] && [ -e "$report" ] || return 0
  {
    echo "minicluster-jobs: $(($(wc -l <"$report")))"
    tail -n "$LOGGED_LINES" "$report" | sed 's/^/minicluster-job: /'
  } >&3
}

#!/bin/sh
# What the press may learn, against the error of all totals, while the auditors' guarantee stays as it is.
#
#     sh examples/two_observers_sweep.sh OUT [NUMBER_OF_VALUES]
#
# writes OUT/frontier.csv (the press's mu, least loss, certified lower bound, mechanism) and OUT/frontier.svg.
set -eu
out=${1:?usage: sh two_observers_sweep.sh OUT [NUMBER_OF_VALUES]}
values=${2:-12}
spec=$(dirname "$0")/../specs/two_observers.priv
mkdir -p "$out"
privspec sweep "$spec" --over "press_mu=0.05:1:log:$values" -o "$out/frontier.csv" --plot "$out/frontier.svg"
cat "$out/frontier.csv"

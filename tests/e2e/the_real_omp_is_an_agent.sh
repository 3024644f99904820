#!/usr/bin/env bash
# omp (Oh My Pi) from npm as an agent: streaming, tools, steering, questions with buttons, /stop, kill -9 of it and of the daemon, idle end, /new.
kind=omp
. "$(dirname "$0")/../clients/coding/scenario.sh"

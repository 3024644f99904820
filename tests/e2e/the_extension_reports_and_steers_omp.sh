#!/usr/bin/env bash
# The extension in the real omp, from npm: what it does is stored, people steer it and answer its questions, in print and in RPC mode, and the
# daemon may be killed at any time.
cd "$(dirname "$0")/../.."
agent=omp
. tests/clients/coding/extension.sh
configure
install_extension
works_in_print_mode
start_rpc
is_steered
asks_people
outlives_the_gateway
begins_another_session
stop

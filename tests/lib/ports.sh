# reserve_port NAME: sets $NAME to a port of 127.0.0.1, reserved while the script runs; see ports.py.
reserve_port() {
        local kept
        exec {kept}< <(exec "$(dirname "${BASH_SOURCE[0]}")/ports.py")
        read -r "$1" <&"$kept"
}

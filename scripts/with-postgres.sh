#!/usr/bin/env bash
# Runs a command with a throwaway Postgres:
#
#     scripts/with-postgres.sh CMD...
#
# CMD finds the server's address in NORN_TEST_POSTGRES. If that variable is already set, CMD runs with it as it is.
# Otherwise the server is a new cluster in a temporary directory on a free port of 127.0.0.1, stopped and removed when
# CMD ends or the script is interrupted; a server that happens to run on the machine is never used. CMD runs in a
# process group of its own, without standard input, and the script exits with its status.
#
# The server binaries may be anywhere Postgres is usually installed. If there are none, root on Debian gets them
# installed; everybody else is told what to install.
set -euo pipefail

readonly database_user=norn
server_user=         # the user the server runs as, when we are root; Postgres refuses root
directory=           # holds the cluster; removed at the end
bin=                 # where initdb, pg_ctl and postgres are
child=               # process group of CMD
interrupted=         # the signal that ended us, if one did

say() { printf 'with-postgres: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# is_subshell reports whether a subshell runs a trap that it inherited, as one may that is interrupted while it starts.
is_subshell() { [ "${BASHPID:-$$}" != "$$" ]; }

# candidates prints the directories that may hold server binaries, the likeliest first.
candidates() {
	pg_config --bindir 2>/dev/null || true
	local found
	for found in $(type -aP initdb || true); do
		dirname "$(readlink -f "$found")"
	done
	local pattern
	for pattern in '/usr/lib/postgresql/*/bin' '/usr/pgsql-*/bin' '/opt/homebrew/opt/postgresql*/bin' \
		'/usr/local/opt/postgresql*/bin' '/usr/local/pgsql*/bin' '/usr/libexec/postgresql*'; do
		compgen -G "$pattern" | sort -rV || true
	done
}

find_binaries() {
	local candidate
	while read -r candidate; do
		if [ -x "$candidate/initdb" ] && [ -x "$candidate/pg_ctl" ] && [ -x "$candidate/postgres" ]; then
			bin=$candidate
			return 0
		fi
	done < <(candidates)
	return 1
}

readonly how_to_install="install the Postgres server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; macOS: brew install postgresql), or set NORN_TEST_POSTGRES to the postgres:// URL of a server that tests may fill"

# install_binaries installs Debian's package, without the cluster that the package would create and start.
install_binaries() {
	if ! is_root || ! [ -e /etc/debian_version ] || ! command -v apt-get >/dev/null; then
		die "no Postgres server binaries found: $how_to_install"
	fi
	say "no Postgres server binaries found, installing Debian's package postgresql"
	local settings=/etc/postgresql-common/createcluster.d status=0
	mkdir -p "$settings"
	echo 'create_main_cluster = false' >"$settings/norn.conf"
	{
		apt-get update -q &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql
	} </dev/null >&2 || status=$?
	rm -f "$settings/norn.conf"
	[ "$status" -eq 0 ] || die "the installation failed: $how_to_install"
	find_binaries || die "the installation brought no server binaries: $how_to_install"
}

choose_server_user() {
	is_root || return 0
	local user
	for user in postgres nobody; do
		if id -u "$user" >/dev/null 2>&1; then
			server_user=$user
			return 0
		fi
	done
	die "Postgres refuses to run as root, and there is no user postgres or nobody to run it as"
}

# as_server runs a command as the server's user, in a directory which that user can read.
as_server() (
	cd /
	export LC_ALL=C
	if [ -z "$server_user" ]; then
		exec "$@"
	elif command -v setpriv >/dev/null; then
		exec setpriv --reuid="$(id -u "$server_user")" --regid="$(id -g "$server_user")" --clear-groups "$@"
	elif command -v runuser >/dev/null; then
		exec runuser -u "$server_user" -- "$@"
	else
		# shellcheck disable=SC2016 # expanded by the inner shell
		exec su -s /bin/sh -c 'exec "$@"' -- "$server_user" sh "$@"
	fi
)

# make_directory leaves a directory that the server's user can enter and write below.
make_directory() {
	directory=$(mktemp -d "${TMPDIR:-/tmp}/norn-postgres.XXXXXX")
	chmod 711 "$directory"
	if ! as_server test -x "$directory"; then
		rmdir "$directory"
		directory=$(mktemp -d /tmp/norn-postgres.XXXXXX)
		chmod 711 "$directory"
	fi
	mkdir "$directory/server"
	[ -z "$server_user" ] || chown "$server_user" "$directory/server"
}

create_cluster() {
	local data=$directory/server/data output
	output=$(as_server "$bin/initdb" -D "$data" -U "$database_user" -A trust -E UTF8 --locale=C --no-sync 2>&1) ||
		die "initdb: $output"
	# A path longer than a socket address may be leaves the server without a Unix socket, which nobody needs.
	local sockets=$directory/server
	[ "${#sockets}" -le 80 ] || sockets=
	as_server tee -a "$data/postgresql.conf" >/dev/null <<-EOF
		listen_addresses = '127.0.0.1'
		unix_socket_directories = '$sockets'
		max_connections = 300
		shared_buffers = 128MB
		fsync = off
		synchronous_commit = off
		full_page_writes = off
		lc_messages = 'C'
	EOF
}

port_is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# start_server tries random ports below the range from which the kernel takes those of outgoing connections.
start_server() {
	local port attempt log=$directory/server/log
	for attempt in {1..20}; do
		port=$((20000 + RANDOM % 12000))
		if port_is_taken "$port"; then continue; fi
		if as_server "$bin/pg_ctl" start -s -w -t 60 -D "$directory/server/data" -l "$log" -o "-p $port" </dev/null >/dev/null 2>&1; then
			export NORN_TEST_POSTGRES="postgres://$database_user@127.0.0.1:$port/postgres?sslmode=disable"
			return 0
		fi
		grep -q 'could not bind' "$log" 2>/dev/null || die "the server did not start: $(cat "$log" 2>&1)"
		: >"$log"
	done
	die "no free port after $attempt attempts"
}

clean_up() {
	is_subshell && return
	trap '' INT TERM HUP
	[ -n "$directory" ] || return 0
	if [ -e "$directory/server/data/postmaster.pid" ]; then
		as_server "$bin/pg_ctl" stop -s -w -m immediate -D "$directory/server/data" </dev/null >/dev/null 2>&1 ||
			say "the server in $directory did not stop"
	fi
	rm -rf "$directory"
}

# interrupt passes a signal on to CMD, or ends the preparations.
interrupt() {
	is_subshell && exit 1
	interrupted=$1
	[ -n "$child" ] || exit $((128 + $(kill -l "$1")))
	kill -s "$1" -- "-$child" 2>/dev/null || true
}

# end_child leaves everything that CMD started ten seconds to heed the signal.
end_child() {
	local tenth
	for tenth in {1..100}; do
		kill -0 -- "-$child" 2>/dev/null || return 0
		sleep 0.1
	done
	say "killing the command, which runs ${tenth%?} seconds after SIG$interrupted"
	kill -s KILL -- "-$child" 2>/dev/null || true
}

# run runs CMD in a process group of its own, so that a signal reaches everything it started.
run() {
	local status=0
	set -m
	"$@" </dev/null &
	child=$!
	set +m
	wait "$child" || status=$?
	if [ -n "$interrupted" ]; then
		end_child
		exit $((128 + $(kill -l "$interrupted")))
	fi
	exit "$status"
}

[ $# -gt 0 ] || die "usage: scripts/with-postgres.sh CMD..."
if [ -n "${NORN_TEST_POSTGRES:-}" ]; then
	exec "$@"
fi

trap clean_up EXIT
for signal in INT TERM HUP; do
	# shellcheck disable=SC2064 # the signal's name is meant to be fixed now
	trap "interrupt $signal" "$signal"
done
find_binaries || install_binaries
choose_server_user
make_directory
create_cluster
start_server
run "$@"

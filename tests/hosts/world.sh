#!/bin/sh
# Two hosts with an ssh server each, in namespaces, for the tests of
# `--target hosts`. To be started in namespaces of its own:
#
#     unshare --user --map-root-user --net --mount --pid --fork --kill-child \
#         --mount-proc sh tests/hosts/world.sh DIRECTORY [many]
#
# Says `ready` when the servers listen, and stands until its input closes.
#
#     controller 10.9.0.1 --- bridge --- a 10.9.0.2, b 10.9.0.3
#     a 10.1.0.1 --- direct link --- b 10.1.0.2
#     with `many`: c 10.9.0.4, d 10.9.0.5 on the bridge too, and another bridge
#     with all four, a 10.2.0.2 to d 10.2.0.5
#
# The servers run as an unprivileged user, because a namespace of users with
# one user has nobody to separate privileges with.
set -eu
world=$1
sbin=/usr/sbin:/sbin
PATH=$PATH:$sbin
user=plumbline

mkdir -p "$world/home/.ssh"
passwd=$world/passwd
printf 'root:x:0:0::/root:/bin/sh\n%s:x:1000:1000::%s:/bin/sh\n' "$user" "$world/home" > "$passwd"
mount --bind "$passwd" /etc/passwd

key() {
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$world/$1" < /dev/null
}
for name in key wrong foreign host-key; do key "$name"; done
# The key `foreign` is for a host that says to be of another architecture.
mkdir "$world/foreign-bin"
printf '#!/bin/sh\ntest "$1" = -s && echo Linux || echo riscv64\n' > "$world/foreign-bin/uname"
chmod 755 "$world/foreign-bin/uname"
{
    cat "$world/key.pub"
    printf 'command="PATH=%s:$PATH; eval \"$SSH_ORIGINAL_COMMAND\"" ' "$world/foreign-bin"
    cat "$world/foreign.pub"
} > "$world/authorized"

ip link set lo up
ip link add bridge type bridge
ip address add 10.9.0.1/24 dev bridge
ip link set bridge up

# A host is a network namespace that a sleeping process keeps.
host() {
    name=$1 number=$2
    unshare --net sleep infinity &
    eval "$name=$!"
    holder=$!
    while [ "$(readlink /proc/$holder/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do
        sleep 0.01
    done
    ip link add "to-$name" type veth peer name control netns "$holder"
    ip link set "to-$name" master bridge up
    in_host "$holder" ip link set lo up
    in_host "$holder" ip address add "10.9.0.$number/24" dev control
    in_host "$holder" ip link set control up
}

# A second network of a host, beside the one of ssh.
data() {
    name=$1 number=$2
    eval "holder=\$$name"
    ip link add "data-$name" type veth peer name data netns "$holder"
    ip link set "data-$name" master data up
    in_host "$holder" ip address add "10.2.0.$number/24" dev data
    in_host "$holder" ip link set data up
}

in_host() {
    holder=$1
    shift
    nsenter --target "$holder" --net "$@"
}

# Each host has a place for temporary files of its own, and a small one for what
# must not fit.
serve() {
    name=$1 holder=$2
    mkdir -p "$world/tmp-$name" "$world/full-$name"
    chmod 700 "$world/tmp-$name"
    mount -t tmpfs -o size=64k,mode=777 tmpfs "$world/full-$name"
    cat > "$world/sshd-$name" <<CONFIG
Port 2222
ListenAddress 0.0.0.0
HostKey $world/host-key
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile $world/authorized
MaxStartups 100
MaxSessions 50
SetEnv TMPDIR=$world/tmp-$name
CONFIG
    in_host "$holder" unshare --user --map-user=1000 --map-group=1000 \
        "$(command -v sshd)" -D -e -f "$world/sshd-$name" 2> "$world/log-$name" &
}

host a 2
host b 3
in_host "$a" ip link add direct type veth peer name direct netns "$b"
in_host "$a" ip address add 10.1.0.1/24 dev direct
in_host "$b" ip address add 10.1.0.2/24 dev direct
in_host "$a" ip link set direct up
in_host "$b" ip link set direct up
serve a "$a"
serve b "$b"
numbers='2 3'
if [ "${2:-}" = many ]; then
    host c 4
    host d 5
    serve c "$c"
    serve d "$d"
    numbers='2 3 4 5'
    ip link add data type bridge
    ip link set data up
    data a 2
    data b 3
    data c 4
    data d 5
fi

# The first value that ssh finds for an option holds, except for keys, of which
# it tries all.
cat > "$world/config" <<CONFIG
Host a b c d *-unknown
    IdentityFile $world/key
Host *-wrong
    IdentityFile $world/wrong
Host *-foreign
    IdentityFile $world/foreign
Host *-unknown
    UserKnownHostsFile /dev/null
Host a* b* c d
    User $user
    Port 2222
    IdentitiesOnly yes
    UserKnownHostsFile $world/known
    GlobalKnownHostsFile none
Host a*
    HostName 10.9.0.2
Host b*
    HostName 10.9.0.3
Host c
    HostName 10.9.0.4
Host d
    HostName 10.9.0.5
CONFIG
for number in $numbers; do
    printf '[10.9.0.%s]:2222 %s\n' "$number" "$(cat "$world/host-key.pub")"
done > "$world/known"

tries=0
for number in $numbers; do
    until ssh-keyscan -T 1 -p 2222 "10.9.0.$number" 2> /dev/null | grep -q ssh; do
        tries=$((tries + 1))
        if [ "$tries" -gt 50 ]; then
            cat "$world/log-a" "$world/log-b" >&2
            exit 1
        fi
        sleep 0.1
    done
done
# From outside, processes are known by other numbers.
echo ready
cat > /dev/null

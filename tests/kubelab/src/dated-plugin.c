/* Stands before a network's plugin under the plugin's name, runs it as the runtime would, and
   notes from when to when ADD and DEL went on. Plugins that this one calls itself, such as its
   IPAM, are called without it: their time is this one's. In C, because it begins in less time
   than a plugin. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLUGINS "/opt/cni/bin"
/* One line for each call: command, plugin, device, namespace/name of the pod, sandbox, when it
   began and ended in nanoseconds of the monotonic clock, and the plugin's exit code. */
#define CALLS "/var/log/plumbline-cni"

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static const char *said(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : "-";
}

/* What the runtime says beside, as KEY=VALUE;KEY=VALUE. `key` has its equals sign. */
static int length_beside(const char *key, const char **value) {
    const char *at = strstr(said("CNI_ARGS"), key);
    *value = at ? at + strlen(key) : "-";
    return (int)strcspn(*value, ";");
}

/* In one write: several plugins may run at a time. A pod does not have to do without its
   network because this fails. */
static void note(const char *command, const char *plugin, long long began, int code) {
    char line[2048];
    const char *space, *pod;
    int of_space = length_beside("K8S_POD_NAMESPACE=", &space), of_pod = length_beside("K8S_POD_NAME=", &pod);
    int length = snprintf(line, sizeof line, "%s %s %s %.*s/%.*s %s %lld %lld %d\n", command, plugin,
                          said("CNI_IFNAME"), of_space, space, of_pod, pod, said("CNI_CONTAINERID"), began, now(), code);
    int file = open(CALLS, O_APPEND | O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (length >= (int)sizeof line || file < 0 || write(file, line, length) != length) perror(CALLS);
}

int main(int count, char **arguments) {
    const char *slash = count ? strrchr(arguments[0], '/') : NULL, *name = slash ? slash + 1 : arguments[0];
    const char *command = said("CNI_COMMAND");
    char path[4096];
    int status;
    snprintf(path, sizeof path, "%s/%s", PLUGINS, name);
    setenv("CNI_PATH", PLUGINS, 1);
    long long began = now();
    pid_t plugin = fork();
    if (plugin == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(path, arguments);
        perror(path);
        _exit(127);
    }
    if (plugin < 0 || waitpid(plugin, &status, 0) < 0) {
        perror(path);
        return 1;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (!strcmp(command, "ADD") || !strcmp(command, "DEL")) note(command, name, began, code);
    return code;
}

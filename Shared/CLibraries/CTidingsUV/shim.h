#ifndef CTIDINGS_UV_SHIM_H
#define CTIDINGS_UV_SHIM_H
#if !__has_include(<uv.h>)
#error "Tidings needs libuv: install the Debian package libuv1-dev"
#else
#include <uv.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// The socket calls take a transparent union in glibc, which Swift cannot form; these take plain pointers
// and return a negative errno on failure, like libuv does.

static inline int tidings_uv_accept(int listener) {
    int fd;
    do { fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static inline int tidings_uv_listen(const void *_Nonnull address, unsigned int length, int backlog) {
    const struct sockaddr *sa = (const struct sockaddr *)address;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int one = 1;
    if (sa->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (sa->sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, sa, length) < 0 || listen(fd, backlog) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static inline int tidings_uv_connect(const void *_Nonnull address, unsigned int length) {
    const struct sockaddr *sa = (const struct sockaddr *)address;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int result;
    do { result = connect(fd, sa, length); } while (result < 0 && errno == EINTR);
    if (result < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static inline int tidings_uv_socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return -errno;
    return -error;
}

static inline void tidings_uv_no_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/// The number of bytes sent, or a negative errno. Never raises SIGPIPE.
static inline ssize_t tidings_uv_send(int fd, const void *_Nonnull bytes, size_t count) {
    ssize_t sent;
    do { sent = send(fd, bytes, count, MSG_NOSIGNAL); } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static inline ssize_t tidings_uv_recv(int fd, void *_Nonnull bytes, size_t count) {
    ssize_t received;
    do { received = recv(fd, bytes, count, 0); } while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}

/// Looks at the first byte without taking it: 0 to 255, -EAGAIN, another negative errno, or -1000 at the end.
static inline int tidings_uv_peek(int fd) {
    unsigned char byte;
    ssize_t received;
    do { received = recv(fd, &byte, 1, MSG_PEEK); } while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received == 0 ? -1000 : byte;
}

static inline int tidings_uv_local_port(int fd) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) return -errno;
    if (address.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

/// Writes the peer's numeric address into `text`; empty for a Unix socket, and when there is no peer any more.
static inline void tidings_uv_peer_address(int fd, char *_Nonnull text, size_t size) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    text[0] = 0;
    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0) return;
    if (address.ss_family == AF_INET) uv_ip4_name((struct sockaddr_in *)&address, text, size);
    if (address.ss_family == AF_INET6) uv_ip6_name((struct sockaddr_in6 *)&address, text, size);
}

/// malloc_trim(3), where there is one.
static inline void tidings_uv_trim_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/// Tells the peer that no more bytes follow.
static inline void tidings_uv_shutdown_writing(int fd) { shutdown(fd, SHUT_WR); }

/// Fills `storage` (sockaddr_storage) from a numeric IPv4 or IPv6 address; the length used, or 0 when
/// `host` is not numeric.
static inline unsigned int tidings_uv_numeric_address(
    const char *_Nonnull host, int port, void *_Nonnull storage
) {
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)storage) == 0) return sizeof(struct sockaddr_in);
    if (uv_ip6_addr(host, port, (struct sockaddr_in6 *)storage) == 0) return sizeof(struct sockaddr_in6);
    return 0;
}

/// Fills `storage` with a Unix socket address; 0 when the path does not fit into its 107 bytes.
static inline unsigned int tidings_uv_unix_address(const char *_Nonnull path, void *_Nonnull storage) {
    struct sockaddr_un *address = (struct sockaddr_un *)storage;
    if (strlen(path) >= sizeof address->sun_path) return 0;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
    return sizeof *address;
}

/// Names the calling thread, as debuggers and `top` show it; at most 15 bytes.
static inline void tidings_uv_name_thread(const char *_Nonnull name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static inline unsigned int tidings_uv_storage_size(void) { return sizeof(struct sockaddr_storage); }

static inline int tidings_uv_is_ipv4(const struct addrinfo *_Nonnull info) { return info->ai_family == AF_INET; }

static inline const void *_Nullable tidings_uv_address(const struct addrinfo *_Nonnull info) { return info->ai_addr; }
static inline unsigned int tidings_uv_address_length(const struct addrinfo *_Nonnull info) { return info->ai_addrlen; }

static inline int tidings_uv_get_address(
    uv_loop_t *_Nonnull loop, uv_getaddrinfo_t *_Nonnull request, uv_getaddrinfo_cb _Nonnull callback,
    const char *_Nonnull host, const char *_Nonnull service
) {
    struct addrinfo hints;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    return uv_getaddrinfo(loop, request, callback, host, service, &hints);
}
#endif
#endif

/* The way from a sandbox to listed hosts, and to no others. */
#include "sandbox_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "../lib/fake_server.h"
#include "agent/sandbox/egress.h"
#include "net/address.h"

static void hosts_are_matched_whole(void **state)
{
        static const struct {
                const char *entry, *host;
                int port;
                bool allowed;
        } rows[] = {
                { "example.org", "example.org", 443, true },
                { "example.org", "example.org", 80, true },
                { "example.org", "EXAMPLE.ORG", 443, true },
                { "example.org", "example.org", 22, false },
                { "example.org", "www.example.org", 443, false },
                { "example.org", "example.org.evil.net", 443, false },
                { "example.org", "notexample.org", 443, false },
                { "example.org:8080", "example.org", 8080, true },
                { "example.org:8080", "example.org", 443, false },
                { "*.example.org", "www.example.org", 443, true },
                { "*.example.org", "a.b.example.org", 443, true },
                { "*.example.org", "example.org", 443, false },
                { "*.example.org", "evilexample.org", 443, false },
                { "*", "anything.net", 443, true },
                { "*", "anything.net", 25, false },
                { "*", "10.0.0.1", 80, false }, /* addresses have no names to judge */
                { "*.0.0.1", "10.0.0.1", 80, false },
                { "10.0.0.1:80", "10.0.0.1", 80, true },
                { "[::1]:8080", "::1", 8080, true },
                { "[::1]:8080", "::1", 80, false },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *item = mem_strdup(rows[i].entry);
                struct setting_list list = { &item, 1, true };
                bool literal = false;

                assert_int_equal(egress_check_entry(item, NULL), 0);
                if (egress_lists(&list, rows[i].host, rows[i].port, &literal) != rows[i].allowed)
                        fail_msg("%s %s:%d", rows[i].entry, rows[i].host, rows[i].port);
                free(item);
        }
}

static void entries_that_could_never_match_are_refused(void **state)
{
        static const char *const wrong[] = { "",      "https://example.org", "example.org:0",
                                             "a b.c", "example.org/path",    "example.org:port",
                                             "[::1",  "exa*mple.org" };
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(wrong); i++) {
                assert_int_equal(egress_check_entry(wrong[i], &err), -1);
                assert_non_null(strstr(err.text, "example.org:8080"));
        }
}

static void addresses_of_private_networks_are_known(void **state)
{
        static const struct {
                const char *address;
                bool is_public;
        } rows[] = {
                { "93.184.216.34", true },
                { "8.8.8.8", true },
                { "127.0.0.1", false },
                { "127.255.255.255", false },
                { "0.0.0.0", false },
                { "10.1.2.3", false },
                { "172.16.0.1", false },
                { "172.31.255.255", false },
                { "172.32.0.1", true },
                { "192.168.1.1", false },
                { "169.254.169.254", false }, /* metadata of clouds */
                { "100.64.0.1", false },
                { "100.128.0.1", true },
                { "192.0.0.1", false },
                { "198.18.0.1", false },
                { "224.0.0.1", false },
                { "255.255.255.255", false },
                { "2606:4700::1111", true },
                { "::1", false },
                { "::", false },
                { "::ffff:127.0.0.1", false },
                { "::ffff:8.8.8.8", false }, /* written in a way that hides what it is */
                { "64:ff9b::7f00:1", false },
                { "fe80::1", false },
                { "fc00::1", false },
                { "fd00:ec2::254", false },
                { "ff02::1", false },
                { "2001:db8::1", false },
                { "2002:7f00:1::", false },
                { "2001::1", false },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sockaddr_in in = { .sin_family = AF_INET };
                struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
                bool six = strchr(rows[i].address, ':') != NULL;

                assert_int_equal(six ? inet_pton(AF_INET6, rows[i].address, &in6.sin6_addr)
                                     : inet_pton(AF_INET, rows[i].address, &in.sin_addr),
                                 1);
                if (address_is_public(six ? (struct sockaddr *)&in6 : (struct sockaddr *)&in) !=
                    rows[i].is_public)
                        fail_msg("%s", rows[i].address);
        }
}

static void requests_are_read(void **state)
{
        static const struct {
                const char *bytes;
                int rc;
                const char *host;
                int port;
        } rows[] = {
                { "CONNECT example.org:443 HTTP/1.1\r\n\r\n", 1, "example.org", 443 },
                { "CONNECT Example.ORG.:443 HTTP/1.0\r\nA: b\r\n\r\n", 1, "example.org", 443 },
                { "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", 1, "::1", 443 },
                { "GET http://example.org/x HTTP/1.1\r\n\r\n", 1, "example.org", 80 },
                { "GET http://example.org HTTP/1.1\r\n\r\n", 1, "example.org", 80 },
                { "GET http://example.org:81/x HTTP/1.1\r\n\r\n", 1, "example.org", 81 },
                { "GET http://example.org/x HTTP/1.1\r\n", 0, "", 0 },
                { "CONNECT example.org HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "CONNECT example.org:99999 HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "GET /x HTTP/1.1\r\nHost: example.org\r\n\r\n", -1, NULL, 0 },
                { "GET https://example.org/ HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "GET http://a@example.org/ HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "GET http:// HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "GET http://exa\tmple.org/ HTTP/1.1\r\n\r\n", -1, NULL, 0 },
                { "GET http://example.org/ HTTP/2.0\r\n\r\n", -1, NULL, 0 },
                { "\r\n\r\n", -1, NULL, 0 },
                { " \r\n\r\n", -1, NULL, 0 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct egress_target to;
                int rc = egress_read(rows[i].bytes, strlen(rows[i].bytes), &to);

                if (rc != rows[i].rc ||
                    (rc == 1 && (strcmp(to.host, rows[i].host) != 0 || to.port != rows[i].port)))
                        fail_msg("%s: %d %s %d", rows[i].bytes, rc, to.host, to.port);
        }
}

/* ---- with a sandbox ---- */

struct told {
        unsigned allowed, refused;
        uint64_t sent, received;
        char host[100], why[300];
};

static void on_request(void *arg, const struct sandbox_request *q)
{
        struct told *t = arg;

        assert_int_equal(q->conversation, 1);
        t->allowed += q->allowed;
        t->refused += !q->allowed;
        t->sent += q->sent;
        t->received += q->received;
        t->host[0] = t->why[0] = '\0';
        strncat(t->host, q->host, sizeof(t->host) - 1);
        if (q->why)
                strncat(t->why, q->why, sizeof(t->why) - 1);
}

/* A sandbox that may reach this entry; %d in it is the server's port. */
static void open_with(struct rig *r, struct fake_server **server, const struct fake_answer *script,
                      size_t count, const char *host, struct told *told)
{
        rig_open(r);
        *server = fake_server_new(r->loop, script, count);
        r->conf.hosts.count = 1;
        r->conf.hosts.items = mem_array(1, sizeof(char *));
        r->conf.hosts.items[0] = mem_printf("%s:%d", host, fake_server_port(*server));
        memset(told, 0, sizeof(*told));
        sandboxes_on_request(r->all, on_request, told);
}

static void close_with(struct rig *r, struct fake_server *server)
{
        fake_server_free(server);
        free(r->conf.hosts.items[0]);
        free(r->conf.hosts.items);
        rig_close(r);
}

/* Asks by the proxy, also for this machine; $PORT is the server's. */
static void ask(struct ran *c, struct rig *r, struct fake_server *server, const char *words)
{
        char *command =
                mem_printf("PORT=%d; curl -sS -m 60 --noproxy '' -x http://127.0.0.1:3128 %s",
                           fake_server_port(server), words);

        ran_run(c, r, command);
        free(command);
}

static void a_listed_host_is_reached_and_told(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", .end = FAKE_CLOSE },
                { "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntunnel", .end = FAKE_KEEP },
        };
        struct fake_server *server;
        struct told told;
        struct rig r;
        struct ran c;

        (void)state;
        open_with(&r, &server, script, COUNT(script), "127.0.0.1", &told);
        ask(&c, &r, server,
            "-H 'Proxy-Authorization: x' -H 'Host: other.example' http://127.0.0.1:$PORT/a?b=c");
        assert_string_equal(c.out.data, "hello");
        assert_memory_equal(fake_server_request(server, 0), "GET /a?b=c HTTP/1.1\r\n", 21);
        assert_null(strstr(fake_server_request(server, 0), "Proxy-"));
        assert_null(strstr(fake_server_request(server, 0), "other.example"));
        assert_non_null(strstr(fake_server_request(server, 0), "Connection: close\r\n"));
        ran_release(&c);
        ask(&c, &r, server, "-p http://127.0.0.1:$PORT/t");
        assert_string_equal(c.out.data, "tunnel");
        ran_release(&c);
        while (told.allowed < 2)
                assert_true(loop_step(r.loop, true));
        assert_int_equal(told.refused, 0);
        assert_true(told.sent > 100);
        assert_true(told.received > 80);
        assert_string_equal(told.host, "127.0.0.1");
        close_with(&r, server);
}

static void other_hosts_and_ports_are_refused(void **state)
{
        struct fake_server *server;
        struct told told;
        struct rig r;
        struct ran c;

        (void)state;
        open_with(&r, &server, NULL, 0, "10.99.0.1", &told);
        ask(&c, &r, server, "-w '%{http_code}' http://127.0.0.1:$PORT/");
        assert_string_equal(c.out.data + c.out.len - 3, "403");
        assert_non_null(strstr(c.out.data, "sandbox.hosts"));
        ran_release(&c);
        ask(&c, &r, server, "-p https://example.org/");
        assert_int_equal(c.exit_code, 56); /* CONNECT failed */
        ran_release(&c);
        assert_int_equal(told.refused, 2);
        assert_string_equal(told.host, "example.org");
        assert_int_equal(fake_server_accepted(server), 0);
        /* programs find the proxy by their environment */
        ran_run(&c, &r, "curl -sS -m 60 http://example.org/");
        assert_non_null(strstr(c.out.data, "may not reach example.org:80"));
        ran_release(&c);
        close_with(&r, server);
}

/* The name is listed, but it leads here. */
static void a_listed_name_that_leads_to_this_machine_is_refused(void **state)
{
        struct fake_server *server;
        struct told told;
        struct rig r;
        struct ran c;

        (void)state;
        open_with(&r, &server, NULL, 0, "localhost", &told);
        ask(&c, &r, server, "http://localhost:$PORT/");
        assert_non_null(strstr(c.out.data, "private network"));
        assert_int_equal(fake_server_accepted(server), 0);
        assert_int_equal(told.refused, 1);
        ran_release(&c);
        close_with(&r, server);
}

static void without_listed_hosts_there_is_no_proxy(void **state)
{
        struct rig *r = *state;

        rig_expect(r, "env | grep -ci proxy; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>&1 | tail -c 20",
                   "0\n Connection refused\n");
}

static void a_wrong_entry_is_refused_by_name(void **state)
{
        struct rig *r = *state;
        static char *items[] = { (char *)(uintptr_t) "https://example.org" };
        struct error err = { 0 };

        r->conf.hosts = (struct setting_list){ items, 1, true };
        assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
        assert_non_null(strstr(err.text, "sandbox.hosts: 'https://example.org' is no host"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hosts_are_matched_whole),
                cmocka_unit_test(entries_that_could_never_match_are_refused),
                cmocka_unit_test(addresses_of_private_networks_are_known),
                cmocka_unit_test(requests_are_read),
                cmocka_unit_test(a_listed_host_is_reached_and_told),
                cmocka_unit_test(other_hosts_and_ports_are_refused),
                cmocka_unit_test(a_listed_name_that_leads_to_this_machine_is_refused),
                TEST(without_listed_hosts_there_is_no_proxy),
                TEST(a_wrong_entry_is_refused_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

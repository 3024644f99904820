/* Who may ask: addresses, keys, hosts, origins and peers. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/scratch.h"
#include "api/core/auth.h"
#include "base/log.h"
#include "base/mem.h"

static void loopback_addresses_are_known(void **state)
{
        static const char *const yes[] = { "127.0.0.1:8420", "127.9.9.9:1", "[::1]:0",
                                           "localhost:8420", "[::ffff:127.0.0.1]:1" };
        static const char *const no[] = { "0.0.0.0:8420",  "[::]:8420",
                                          "192.168.1.7:1", "example.org:80",
                                          ":8420",         "127.0.0.1.example.org:80",
                                          "[::1" };

        (void)state;
        for (size_t i = 0; i < COUNT(yes); i++)
                assert_true(auth_is_loopback(yes[i]));
        for (size_t i = 0; i < COUNT(no); i++)
                assert_false(auth_is_loopback(no[i]));
}

static struct auth opened(const char *listen, const char *public_url, const char *proxy, bool tls)
{
        char *items[] = { (char *)proxy };
        struct http_conf conf = { .listen = (char *)listen, .public_url = (char *)public_url };
        struct auth a;
        struct error err;

        if (proxy)
                conf.trusted_proxy = (struct setting_list){ items, 1, true };
        if (tls)
                conf.tls_cert = conf.tls_key = (char *)"x.pem";
        assert_int_equal(auth_init(&a, &conf, &err), 0);
        return a;
}

static void an_open_address_needs_tls_or_a_named_proxy(void **state)
{
        struct http_conf conf = { .listen = (char *)"0.0.0.0:8420" };
        struct error err;
        struct auth a;

        (void)state;
        assert_int_equal(auth_init(&a, &conf, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_non_null(strstr(err.text, "http.tlsCert"));
        assert_non_null(strstr(err.text, "http.trustedProxy"));
        auth_release(&a);
        a = opened("0.0.0.0:8420", NULL, NULL, true);
        auth_release(&a);
        a = opened("0.0.0.0:8420", NULL, "10.0.0.1", false);
        auth_release(&a);
}

static void one_address_cannot_take_all_connections(void **state)
{
        static const struct {
                const char *listen, *proxy;
                unsigned limit;
        } rows[] = {
                { "127.0.0.1:8420", NULL, 0 },
                { "0.0.0.0:8420", NULL, 256 },
                { "0.0.0.0:8420", "10.0.0.1", 0 }, /* all clients share its address */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct auth a = opened(rows[i].listen, NULL, rows[i].proxy, true);

                assert_int_equal(auth_max_per_address(&a), rows[i].limit);
                auth_release(&a);
        }
}

static void without_tls_only_the_named_proxies_may_connect(void **state)
{
        struct auth a = opened("0.0.0.0:8420", NULL, "10.1.0.0/16", false);

        (void)state;
        assert_true(auth_peer_ok(&a, "10.1.2.3"));
        assert_true(auth_peer_ok(&a, "::ffff:10.1.2.3"));
        assert_true(auth_peer_ok(&a, "127.0.0.1"));
        assert_false(auth_peer_ok(&a, "10.2.0.1"));
        assert_false(auth_peer_ok(&a, "2001:db8::1"));
        auth_release(&a);
        a = opened("0.0.0.0:8420", NULL, NULL, true);
        assert_true(auth_peer_ok(&a, "203.0.113.5"));
        auth_release(&a);
}

static void this_machine_may_connect_by_its_outward_address(void **state)
{
        struct auth a = opened("192.0.2.7:8420", NULL, "10.0.0.1", false);

        (void)state;
        assert_true(auth_peer_ok(&a, "192.0.2.7"));
        assert_false(auth_peer_ok(&a, "192.0.2.8"));
        assert_false(auth_peer_ok(&a, ""));
        auth_release(&a);
        a = opened("[2001:db8::7]:8420", NULL, "10.0.0.1", false);
        assert_true(auth_peer_ok(&a, "2001:db8::7"));
        assert_false(auth_peer_ok(&a, "2001:db8::8"));
        auth_release(&a);
        a = opened("0.0.0.0:8420", NULL, "10.0.0.1", false);
        assert_false(auth_peer_ok(&a, "192.0.2.7"));
        auth_release(&a);
}

static void a_foreign_host_name_is_refused_on_loopback(void **state)
{
        struct auth a = opened("127.0.0.1:8420", "https://bot.example.org/x", NULL, false);

        (void)state;
        assert_true(auth_host_ok(&a, "127.0.0.1:8420"));
        assert_true(auth_host_ok(&a, "localhost"));
        assert_true(auth_host_ok(&a, "[::1]:8420"));
        assert_true(auth_host_ok(&a, "BOT.example.org"));
        assert_false(auth_host_ok(&a, "evil.example"));
        assert_false(auth_host_ok(&a, "localhost.evil.example"));
        assert_false(auth_host_ok(&a, ""));
        assert_false(auth_host_ok(&a, NULL));
        auth_release(&a);
}

static void pages_of_other_sites_are_refused(void **state)
{
        struct auth a = opened("127.0.0.1:8420", "https://bot.example.org", NULL, false);

        (void)state;
        assert_true(auth_origin_ok(&a, NULL, "127.0.0.1:8420"));
        assert_true(auth_origin_ok(&a, "http://127.0.0.1:8420", "127.0.0.1:8420"));
        assert_true(auth_origin_ok(&a, "https://bot.example.org", "127.0.0.1:8420"));
        assert_false(auth_origin_ok(&a, "http://127.0.0.1:9999", "127.0.0.1:8420"));
        assert_false(auth_origin_ok(&a, "https://evil.example", "127.0.0.1:8420"));
        assert_false(auth_origin_ok(&a, "null", "127.0.0.1:8420"));
        assert_false(auth_origin_ok(&a, "", "127.0.0.1:8420"));
        auth_release(&a);
}

static char *key_of(const char *dir)
{
        char *path = scratch_path(dir, "operator.key"), *key = mem_zalloc(300);
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        assert_non_null(fgets(key, 299, f));
        fclose(f);
        free(path);
        key[strcspn(key, "\n")] = '\0';
        return key;
}

static void swallow(const char *line, void *arg)
{
        (void)line;
        *(int *)arg += 1;
}

static void the_key_is_created_once_for_its_owner_alone(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "operator.key"), *first, *second;
        struct auth a = { 0 };
        struct error err;
        struct stat st;

        (void)state;
        assert_int_equal(auth_load_operator_key(&a, dir, &err), 0);
        first = key_of(dir);
        assert_int_equal(strlen(first), 44);
        assert_memory_equal(first, "dgm_", 4);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(auth_load_operator_key(&a, dir, &err), 0);
        second = key_of(dir);
        assert_string_equal(first, second);
        free(second);
        free(first);
        free(path);
        auth_release(&a);
        scratch_free(dir);
}

static void a_readable_key_file_is_closed(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "operator.key");
        struct auth a = { 0 };
        struct error err;
        struct stat st;
        int warnings = 0;

        (void)state;
        assert_int_equal(auth_load_operator_key(&a, dir, &err), 0);
        assert_int_equal(chmod(path, 0644), 0);
        log_divert(swallow, &warnings);
        assert_int_equal(auth_load_operator_key(&a, dir, &err), 0);
        log_divert(NULL, NULL);
        assert_int_equal(warnings, 1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(path);
        auth_release(&a);
        scratch_free(dir);
}

static void a_broken_key_file_is_an_error(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "operator.key");
        struct auth a = { 0 };
        struct error err;
        int fd = open(path, O_WRONLY | O_CREAT, 0600);

        (void)state;
        assert_int_equal(write(fd, "short\n", 6), 6);
        close(fd);
        assert_int_equal(auth_load_operator_key(&a, dir, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        free(path);
        auth_release(&a);
        scratch_free(dir);
}

static void the_key_is_taken_from_either_header(void **state)
{
        char *dir = scratch_new(), *key, *bearer, *basic;
        struct auth a = { 0 };
        struct key *caller = NULL;
        struct error err;

        (void)state;
        assert_int_equal(auth_load_operator_key(&a, dir, &err), 0);
        key = key_of(dir);
        bearer = mem_printf("bearer %s", key);
        basic = mem_printf("Basic %s", key);
        assert_int_equal(auth_check(&a, bearer, NULL, &caller), AUTH_OK);
        assert_null(caller->adapters);
        assert_int_equal(auth_check(&a, NULL, key, &caller), AUTH_OK);
        assert_int_equal(auth_check(&a, bearer, key, &caller), AUTH_OK);
        assert_int_equal(auth_check(&a, NULL, NULL, &caller), AUTH_NO_KEY);
        assert_int_equal(auth_check(&a, bearer, "wrong", &caller), AUTH_WRONG);
        assert_int_equal(auth_check(&a, "Bearer wrong", key, &caller), AUTH_WRONG);
        assert_int_equal(auth_check(&a, basic, NULL, &caller), AUTH_WRONG);
        assert_int_equal(auth_check(&a, "Bearer ", NULL, &caller), AUTH_WRONG);
        assert_int_equal(auth_check(&a, NULL, "", &caller), AUTH_WRONG);
        auth_release(&a);
        free(bearer);
        free(basic);
        free(key);
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(loopback_addresses_are_known),
                cmocka_unit_test(an_open_address_needs_tls_or_a_named_proxy),
                cmocka_unit_test(one_address_cannot_take_all_connections),
                cmocka_unit_test(without_tls_only_the_named_proxies_may_connect),
                cmocka_unit_test(this_machine_may_connect_by_its_outward_address),
                cmocka_unit_test(a_foreign_host_name_is_refused_on_loopback),
                cmocka_unit_test(pages_of_other_sites_are_refused),
                cmocka_unit_test(the_key_is_created_once_for_its_owner_alone),
                cmocka_unit_test(a_readable_key_file_is_closed),
                cmocka_unit_test(a_broken_key_file_is_an_error),
                cmocka_unit_test(the_key_is_taken_from_either_header),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

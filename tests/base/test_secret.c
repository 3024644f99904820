#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"

static char dir[] = "/tmp/test_secret.XXXXXX";

static int make_dir(void **state)
{
        (void)state;
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
        (void)state;
        return rmdir(dir);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
        char *path = mem_printf("%s/%s", dir, name);
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
        free(path);
}

static void remove_file(const char *name)
{
        char *path = mem_printf("%s/%s", dir, name);

        assert_int_equal(unlink(path), 0);
        free(path);
}

static void assert_resolves(const char *handle, const char *expected)
{
        struct error err = { 0 };
        struct secret *s;
        bool literal;

        if (secret_resolve(handle, dir, &s, &literal, &err) < 0)
                fail_msg("%s: %s", handle, err.text);
        assert_string_equal(secret_reveal(s), expected);
        assert_int_equal(secret_length(s), strlen(expected));
        assert_false(literal);
        secret_free(s);
}

static void assert_fails(const char *handle, enum error_kind kind, const char *why)
{
        struct error err = { 0 };
        struct secret *s;
        bool literal;

        assert_int_equal(secret_resolve(handle, dir, &s, &literal, &err), -1);
        assert_null(s);
        assert_int_equal(err.kind, kind);
        if (!strstr(err.text, why))
                fail_msg("'%s' does not say '%s'", err.text, why);
}

static void digests_are_the_published_ones(void **state)
{
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE];
        char long_key[131];

        (void)state;
        assert_string_equal(crypto_sha256_hex("", 0, hex),
                            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_string_equal(crypto_sha256_hex("abc", 3, hex),
                            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        /* RFC 4231, cases 2 and 6 */
        crypto_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, sum);
        assert_string_equal(crypto_hex(sum, sizeof(sum), hex),
                            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        memset(long_key, 0xaa, sizeof(long_key));
        crypto_hmac_sha256(long_key, sizeof(long_key),
                           "Test Using Larger Than Block-Size Key - Hash Key First", 54, sum);
        assert_string_equal(crypto_hex(sum, sizeof(sum), hex),
                            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void comparison_covers_length_and_bytes(void **state)
{
        struct secret *s = secret_new("abcdefg", 7), *copy = secret_dup(s);

        (void)state;
        assert_true(crypto_equal("", 0, "", 0));
        assert_false(crypto_equal("a", 1, "ab", 2));
        assert_true(secret_equals(s, "abcdefg", 7));
        assert_false(secret_equals(s, "abcdefh", 7));
        assert_false(secret_equals(s, "abcdef", 6));
        assert_false(secret_equals(s, NULL, 0));
        assert_false(secret_equals(NULL, "", 0));
        assert_true(secret_equals(NULL, NULL, 0));
        secret_free(s);
        assert_true(secret_equals(copy, "abcdefg", 7));
        secret_free(copy);
        secret_free(NULL);
        assert_null(secret_dup(NULL));
}

static void a_secret_is_hidden_in_logs_until_freed(void **state)
{
        struct secret *s = secret_new("hunter2hunter2", 14);
        char text[] = "token hunter2hunter2 used";

        (void)state;
        log_redact(text);
        assert_string_equal(text, "token ************** used");
        secret_free(s);
        memcpy(text, "token hunter2hunter2 used", sizeof(text));
        log_redact(text);
        assert_non_null(strstr(text, "hunter2"));
}

static void the_environment_gives_a_secret(void **state)
{
        (void)state;
        setenv("TEST_SECRET_A", "from-env", 1);
        setenv("TEST_SECRET_EMPTY", "", 1);
        unsetenv("TEST_SECRET_NONE");
        assert_resolves("env:TEST_SECRET_A", "from-env");
        assert_fails("env:TEST_SECRET_NONE", ERR_MISSING, "'TEST_SECRET_NONE' is not set");
        assert_fails("env:TEST_SECRET_EMPTY", ERR_INVALID, "'TEST_SECRET_EMPTY' is empty");
        assert_fails("env:", ERR_INVALID, "name of an environment variable");
}

static void a_file_gives_a_secret_without_its_last_newline(void **state)
{
        char *absolute = mem_printf("file:%s/key", dir);

        (void)state;
        write_file("key", "from file \n", 11);
        assert_resolves("file:key", "from file ");
        assert_resolves(absolute, "from file ");
        write_file("key", "two\n\n", 5);
        assert_resolves("file:key", "two\n");
        write_file("key", "dos\r\n", 5);
        assert_resolves("file:key", "dos");
        write_file("key", "\n", 1);
        assert_fails("file:key", ERR_INVALID, "is empty");
        write_file("key", "a\0b", 3);
        assert_fails("file:key", ERR_INVALID, "NUL");
        remove_file("key");
        assert_fails("file:key", ERR_MISSING, "No such file");
        assert_fails("file:.", ERR_IO, "Is a directory");
        assert_fails("file:", ERR_INVALID, "needs a path");
        assert_fails("file:/dev/zero", ERR_INVALID, "larger than");
        free(absolute);
}

static void a_command_gives_its_first_line(void **state)
{
        (void)state;
        assert_resolves("cmd:printf one\\ntwo\\n", "one");
        assert_resolves("cmd:echo  'a  b' \"c'd\"", "a  b c'd");
        assert_resolves("cmd:echo $HOME;id", "$HOME;id");
        assert_fails("cmd:", ERR_INVALID, "needs a program");
        assert_fails("cmd:echo 'x", ERR_INVALID, "not closed");
        assert_fails("cmd:/no/such/program", ERR_MISSING, "'/no/such/program': No such file");
        assert_fails("cmd:false", ERR_IO, "status 1");
        assert_fails("cmd:true", ERR_INVALID, "is empty");
        assert_fails("cmd:sh -c 'kill -9 $$'", ERR_IO, "signal 9");
        assert_fails("cmd:yes", ERR_INVALID, "more than");
}

static void a_command_gets_its_directory_and_little_else(void **state)
{
        (void)state;
        setenv("TEST_SECRET_A", "must not be inherited", 1);
        write_file("key", "in the directory\n", 17);
        assert_resolves("cmd:cat key", "in the directory");
        assert_resolves("cmd:sh -c 'echo x$TEST_SECRET_A'", "x");
        assert_resolves("cmd:sh -c 'cat; echo end'", "end");
        remove_file("key");
}

static size_t open_files(void)
{
        DIR *d = opendir("/proc/self/fd");
        size_t count = 0;

        assert_non_null(d);
        while (readdir(d))
                count++;
        closedir(d);
        return count;
}

static void commands_leave_no_descriptors_open(void **state)
{
        size_t before = open_files();

        (void)state;
        assert_resolves("cmd:echo x", "x");
        assert_fails("cmd:/no/such/program", ERR_MISSING, "No such");
        assert_int_equal(open_files(), before);
}

static void a_command_gets_no_descriptor_of_ours(void **state)
{
        int fd = open("/dev/null", O_RDONLY); /* as libcurl makes its sockets */

        (void)state;
        assert_int_equal(dup2(fd, 200), 200);
        assert_resolves("cmd:sh -c '[ -e /proc/self/fd/200 ] && echo open || echo closed'",
                        "closed");
        close(200);
        close(fd);
}

static void a_command_that_closes_its_output_is_waited_for(void **state)
{
        (void)state;
        assert_fails("cmd:sh -c 'echo x; exec >&-; exit 3'", ERR_IO, "status 3");
}

static void text_without_a_handle_is_the_secret_itself(void **state)
{
        struct secret *s;
        bool literal;

        (void)state;
        assert_int_equal(secret_resolve("123:abc", NULL, &s, &literal, NULL), 0);
        assert_true(literal);
        assert_string_equal(secret_reveal(s), "123:abc");
        secret_free(s);
        assert_fails("", ERR_INVALID, "is empty");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(digests_are_the_published_ones),
                cmocka_unit_test(comparison_covers_length_and_bytes),
                cmocka_unit_test(a_secret_is_hidden_in_logs_until_freed),
                cmocka_unit_test(the_environment_gives_a_secret),
                cmocka_unit_test(a_file_gives_a_secret_without_its_last_newline),
                cmocka_unit_test(a_command_gives_its_first_line),
                cmocka_unit_test(a_command_gets_its_directory_and_little_else),
                cmocka_unit_test(a_command_gets_no_descriptor_of_ours),
                cmocka_unit_test(commands_leave_no_descriptors_open),
                cmocka_unit_test(a_command_that_closes_its_output_is_waited_for),
                cmocka_unit_test(text_without_a_handle_is_the_secret_itself),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/agents_private.h"

static const unsigned char secret[SHA256_SIZE] = "0123456789abcdef0123456789abcde";
static const unsigned char other[SHA256_SIZE] = "fedcba9876543210fedcba987654321";

static enum error_kind check(const unsigned char *key, const char *turn, const char *token,
                             int64_t now)
{
        struct error err = { 0 };

        return reply_token_check(key, turn, token, now, &err) == 0 ? ERR_NONE : err.kind;
}

static void a_token_is_valid_for_its_turn_until_it_expires(void **state)
{
        char token[REPLY_TOKEN_SIZE];

        (void)state;
        reply_token_write(secret, "trn-12", 1000, token);
        assert_int_equal(check(secret, "trn-12", token, 1000), ERR_NONE);
        assert_int_equal(check(secret, "trn-12", token, 1001), ERR_TIMEOUT);
        assert_int_equal(check(secret, "trn-1", token, 0), ERR_REFUSED);
        assert_int_equal(check(secret, "trn-13", token, 0), ERR_REFUSED);
        assert_int_equal(check(other, "trn-12", token, 0), ERR_REFUSED);
}

static void a_changed_token_is_refused(void **state)
{
        char token[REPLY_TOKEN_SIZE], changed[REPLY_TOKEN_SIZE + 1];
        size_t n;

        (void)state;
        reply_token_write(secret, "trn-12", 1000, token);
        n = strlen(token);
        for (size_t i = 0; i < n; i++) {
                memcpy(changed, token, n + 1);
                changed[i] = (char)(changed[i] == '0' ? '1' : '0');
                assert_int_equal(check(secret, "trn-12", changed, 0), ERR_REFUSED);
                changed[i] = '\0';
                assert_int_equal(check(secret, "trn-12", changed, 0), ERR_REFUSED);
        }
        snprintf(changed, sizeof(changed), "%s0", token);
        assert_int_equal(check(secret, "trn-12", changed, 0), ERR_REFUSED);
        snprintf(changed, sizeof(changed), " %s", token);
        assert_int_equal(check(secret, "trn-12", changed, 0), ERR_REFUSED);
        assert_int_equal(check(secret, "trn-12", "", 0), ERR_REFUSED);
        assert_int_equal(check(secret, "trn-12", "99999999999999999999999999.x", 0), ERR_REFUSED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_token_is_valid_for_its_turn_until_it_expires),
                cmocka_unit_test(a_changed_token_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cli/editor.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#define HISTORY_LINES 1000
#define LONGEST_CHAR  4

struct editor {
        struct loop *loop;
        EditLine *el;
        History *history;
        char *history_file;
        const char *prompt; /* of the line being read */
        uv_poll_t poll;
        struct buf typed; /* not yet taken by libedit */
        struct termios before;
        bool has_before, reading, stopped, ended, interrupted, closed;
};

/* ---- characters ---- */

static void on_input(uv_poll_t *p, int status, int events)
{
        struct editor *e = p->data;
        char bytes[256];
        ssize_t n;

        (void)events;
        n = status < 0 ? 0 : read(STDIN_FILENO, bytes, sizeof(bytes));
        if (n > 0)
                buf_add(&e->typed, bytes, (size_t)n);
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
                e->ended = true;
}

/* Is the first character complete? Its lead byte gives the length. */
static bool has_char(const struct editor *e)
{
        unsigned char lead = e->typed.len > 0 ? (unsigned char)e->typed.data[0] : 0;
        size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

        return e->typed.len >= need || (e->ended && e->typed.len > 0);
}

static int read_char(EditLine *el, wchar_t *out)
{
        struct editor *e = NULL;
        uint32_t c;

        el_get(el, EL_CLIENTDATA, &e);
        while (!has_char(e) && !e->ended && !e->interrupted && !e->stopped)
                loop_step(e->loop, true);
        if (e->interrupted || e->stopped)
                return -1;
        if (e->typed.len == 0)
                return 0;
        buf_consume(&e->typed, utf8_decode(e->typed.data, e->typed.len, &c));
        *out = (wchar_t)c;
        return 1;
}

static const char *prompt_of(EditLine *el)
{
        struct editor *e = NULL;

        el_get(el, EL_CLIENTDATA, &e);
        return e->prompt;
}

/* ---- opening and closing ---- */

static void open_history(struct editor *e, const char *file)
{
        HistEvent ev;

        e->history = history_init();
        history(e->history, &ev, H_SETSIZE, HISTORY_LINES);
        history(e->history, &ev, H_SETUNIQUE, 1);
        e->history_file = mem_strdup(file);
        if (file)
                history(e->history, &ev, H_LOAD, file);
        el_set(e->el, EL_HIST, history, e->history);
}

struct editor *editor_new(struct loop *l, const char *history_file)
{
        struct editor *e = mem_zalloc(sizeof(*e));

        /* libedit follows the locale; a bare system sets none, but people type UTF-8 */
        if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
                setlocale(LC_CTYPE, "C.UTF-8");
        e->loop = l;
        e->prompt = "";
        buf_init(&e->typed, 0);
        e->has_before = tcgetattr(STDIN_FILENO, &e->before) == 0;
        uv_poll_init(loop_uv(l), &e->poll, STDIN_FILENO);
        e->poll.data = e;
        e->el = el_init("dragoman", stdin, stdout, stderr);
        el_set(e->el, EL_CLIENTDATA, e);
        el_set(e->el, EL_PROMPT, prompt_of);
        el_set(e->el, EL_EDITOR, "emacs");
        el_set(e->el, EL_SIGNAL, 0);
        el_set(e->el, EL_GETCFN, read_char);
        /*
         * Also between two lines, so that text typed ahead, above all Ctrl-D, waits for the next
         * line and does not mix with an answer.
         */
        el_set(e->el, EL_SETTY, "-x", "-icanon", "-echo", NULL);
        open_history(e, history_file);
        el_source(e->el, NULL);
        return e;
}

static void on_closed(uv_handle_t *h)
{
        ((struct editor *)h->data)->closed = true;
}

void editor_free(struct editor *e)
{
        HistEvent ev;

        if (!e)
                return;
        if (e->history_file && history(e->history, &ev, H_SAVE, e->history_file) >= 0)
                (void)!chmod(e->history_file, 0600);
        el_end(e->el);
        history_end(e->history);
        if (e->has_before)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &e->before);
        uv_close((uv_handle_t *)&e->poll, on_closed);
        while (!e->closed)
                loop_step(e->loop, true);
        buf_release(&e->typed);
        free(e->history_file);
        free(e);
}

/* ---- lines ---- */

char *editor_read(struct editor *e, const char *prompt)
{
        const char *line;
        HistEvent ev;
        char *copy;
        int n = 0;

        if (e->interrupted || (e->ended && e->typed.len == 0))
                return NULL;
        uv_poll_start(&e->poll, UV_READABLE, on_input);
        e->prompt = prompt;
        e->stopped = false;
        e->reading = true;
        line = el_gets(e->el, &n);
        e->reading = false;
        uv_poll_stop(&e->poll);
        if (!line || n <= 0 || e->interrupted || e->stopped)
                return NULL;
        copy = mem_strndup(line, (size_t)n);
        copy[strcspn(copy, "\r\n")] = '\0';
        if (copy[strspn(copy, " \t")] != '\0')
                history(e->history, &ev, H_ENTER, copy);
        return copy;
}

void editor_interrupt(struct editor *e)
{
        e->interrupted = true;
}

void editor_stop(struct editor *e)
{
        e->stopped = e->reading;
}

bool editor_stopped(const struct editor *e)
{
        return e->stopped;
}

void editor_hide(struct editor *e)
{
        if (e->reading)
                fputs("\r\033[K", stdout);
}

void editor_show(struct editor *e)
{
        fflush(stdout);
        if (e->reading)
                el_set(e->el, EL_REFRESH);
}

void editor_resized(struct editor *e)
{
        el_resize(e->el);
}

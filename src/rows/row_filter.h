/*
 * row_filter: conditions that lists have in common.
 */
#ifndef ROWS_ROW_FILTER_H
#define ROWS_ROW_FILTER_H

/* The column is one of the adapters ",api,tg,"; a null list means all. */
#define ROW_FILTER_ADAPTERS(column, parameter) \
        "(CAST(" parameter " AS TEXT) IS NULL" \
        " OR replace(" parameter ", ',' || " column " || ',', '') <> " parameter ")"
/* The column is the value; a null value means any. */
#define ROW_FILTER_TEXT(column, parameter) \
        "(CAST(" parameter " AS TEXT) IS NULL OR " column " = " parameter ")"

#endif

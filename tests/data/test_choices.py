"""Orders of options: balanced, stored, and independent of the order of the file."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from data.choices import balanced_letters, shuffled_options

IDS = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=40, unique=True)


@given(IDS, st.integers(2, 12), st.integers())
def test_letters_are_as_equal_as_can_be(ids, options, seed):
    counts = Counter(balanced_letters(ids, options, seed))
    every = [counts["ABCDEFGHIJKL"[place]] for place in range(options)]
    assert sum(every) == len(ids)
    assert max(every) - min(every) <= 1


@given(IDS, st.randoms())
def test_letters_belong_to_ids_and_not_to_rows(ids, random):
    dealt = dict(zip(ids, balanced_letters(ids, 4), strict=True))
    mixed = random.sample(ids, len(ids))
    assert dict(zip(mixed, balanced_letters(mixed, 4), strict=True)) == dealt


def test_another_seed_deals_other_letters():
    ids = [str(number) for number in range(40)]
    assert balanced_letters(ids, 4, seed=1) != balanced_letters(ids, 4, seed=2)


@given(st.lists(st.text(max_size=5), min_size=1, max_size=9), st.integers(0, 9), st.text())
def test_options_are_kept_and_the_right_one_stands_where_it_should(wrong, place, question_id):
    place = min(place, len(wrong))
    options = shuffled_options("right!", wrong, "ABCDEFGHIJ"[place], question_id)
    assert options[place] == "right!"
    assert Counter(options) == Counter(["right!", *wrong])


def test_every_order_of_the_wrong_options_occurs_about_equally_often():
    counts = Counter(shuffled_options("r", ["x", "y", "z"], "A", str(n)) for n in range(6000))
    assert len(counts) == 6
    # 1,000 expected; the deviation of a binomial is 29.
    assert all(abs(count - 1000) < 150 for count in counts.values())

from __future__ import annotations

from viewer.index.chain_layout import MOST_CARDS, ChainCard, ChainLane, fold, place_lanes


def card(step: int, verdict: str = "match") -> ChainCard:
    return ChainCard(step, 1000 - step, verdict)


def test_a_run_of_other_hashes_becomes_one_card() -> None:
    cards = [card(1), *(card(n, "hashDiffers") for n in range(2, 9)), card(9, "collision")]
    folded, left_out = fold(cards)
    assert [(c.verdict, c.folded) for c in folded] == [("match", 1), ("hashDiffers", 7), ("collision", 1)]
    assert left_out == 0


def test_two_other_hashes_in_a_row_stay_two_cards() -> None:
    folded, _ = fold([card(1, "hashDiffers"), card(2, "hashDiffers"), card(3)])
    assert [c.folded for c in folded] == [1, 1, 1]


def test_a_long_chain_is_cut_and_says_by_how_much() -> None:
    folded, left_out = fold([card(n) for n in range(MOST_CARDS + 7)])
    assert len(folded) == MOST_CARDS
    assert left_out == 7


def test_cards_stay_inside_their_lane_and_wrap_to_new_rows() -> None:
    lanes = [
        ChainLane("new", "", False, "passed over"),
        ChainLane("old", "", True, "", slot=5, cards=tuple(card(n) for n in range(11)), end_note=("loop", "why")),
    ]
    places, height = place_lanes(lanes, 1000)
    walked = places[1]
    assert len({box.y for box in walked.cards}) > 1
    for box in [*walked.cards, walked.note, walked.slot]:
        assert box is not None
        assert box.x >= walked.box.x
        assert box.x + box.width <= walked.box.x + walked.box.width
        assert box.y + box.height <= walked.box.y + walked.box.height
    assert places[0].box.y + places[0].box.height < walked.box.y
    assert height >= walked.box.y + walked.box.height

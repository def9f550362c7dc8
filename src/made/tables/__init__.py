"""Tables of users to codes and back."""
